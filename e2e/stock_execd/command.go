package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"stock_execd/model"
)

const (
	tailEvery  = 100 * time.Millisecond
	termGrace  = 3 * time.Second
	killGrace  = 2 * time.Second
	lateEveryN = 7 // of so many commands one gets its first ping after the final event
)

// command is what is remembered of one that was started, for status, logs and interrupt.
type command struct {
	mu         sync.Mutex
	status     model.CommandStatus
	background bool
	output     string // file with the merged output of a background command
	pgid       int
}

var (
	commandsMu sync.Mutex
	commands   = map[string]*command{}
	started    uint64
)

func newID() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err)
	}
	return hex.EncodeToString(b[:])
}

func findCommand(id string) *command {
	commandsMu.Lock()
	defer commandsMu.Unlock()
	return commands[id]
}

func (c *command) snapshot() model.CommandStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

func (c *command) finish(code int, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().UTC()
	c.status.Running, c.status.ExitCode, c.status.Error, c.status.FinishedAt = false, &code, text, &now
}

func runCommand(w http.ResponseWriter, r *http.Request) {
	var req model.RunCommandRequest
	if !decode(w, r, &req) {
		return
	}
	cwd, problem := checkCommand(&req)
	if problem != "" {
		sendError(w, 400, badRequest, "invalid request, validation error %s", problem)
		return
	}
	c := &command{background: req.Background}
	c.status = model.CommandStatus{Id: newID(), Content: req.Command, Running: true, StartedAt: time.Now().UTC()}
	commandsMu.Lock()
	commands[c.status.Id] = c
	commandsMu.Unlock()

	s := startStream(w)
	s.text("init", c.status.Id)
	late := atomic.AddUint64(&started, 1)%lateEveryN == 0
	stop := s.pings(late)
	if req.Background {
		startBackground(s, c, &req, cwd)
	} else {
		runForeground(s, c, &req, cwd)
	}
	time.Sleep(holdOpen)
	stop()
}

// checkCommand validates in the order and words of the original, whose
// validator names the struct fields.
func checkCommand(req *model.RunCommandRequest) (cwd, problem string) {
	var failed []string
	if req.Command == "" {
		failed = append(failed, "Key: 'RunCommandRequest.Command' Error:Field validation for 'Command' failed on the 'required' tag")
	}
	if req.TimeoutMs < 0 {
		failed = append(failed, "Key: 'RunCommandRequest.TimeoutMs' Error:Field validation for 'TimeoutMs' failed on the 'gte' tag")
	}
	if failed != nil {
		return "", strings.Join(failed, "\n")
	}
	if req.Gid != nil && req.Uid == nil {
		return "", "uid is required when gid is provided"
	}
	if req.Cwd == "" {
		return "", ""
	}
	cwd, err := expandPath(req.Cwd)
	if err != nil {
		return "", err.Error()
	}
	info, err := os.Stat(cwd)
	if err != nil {
		return "", "working directory does not exist: " + req.Cwd + ": " + err.Error()
	}
	if !info.IsDir() {
		return "", "working directory is not a directory: " + req.Cwd
	}
	return cwd, ""
}

func prepare(c *command, req *model.RunCommandRequest, cwd string) *exec.Cmd {
	shell := "sh"
	if _, err := exec.LookPath("bash"); err == nil {
		shell = "bash"
	}
	cmd := exec.Command(shell, "-c", req.Command)
	cmd.Dir = cwd
	cmd.Env = append(os.Environ(), envsFile()...)
	for name, value := range req.Envs {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if req.Uid != nil {
		cred := &syscall.Credential{Uid: *req.Uid, Gid: primaryGroup(*req.Uid)}
		if req.Gid != nil {
			cred.Gid = *req.Gid
		}
		cmd.SysProcAttr.Credential = cred
	}
	return cmd
}

func primaryGroup(uid uint32) uint32 {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return 0
	}
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return uint32(gid)
}

// envsFile reads the NAME=VALUE lines of the file named by EXECD_ENVS, to
// which commands append what later commands are to see.
func envsFile() []string {
	f, err := os.Open(os.Getenv("EXECD_ENVS"))
	if err != nil {
		return nil
	}
	defer f.Close()
	var envs []string
	for in := bufio.NewScanner(f); in.Scan(); {
		line := strings.TrimSpace(in.Text())
		if line != "" && line[0] != '#' && strings.IndexByte(line, '=') > 0 {
			envs = append(envs, line)
		}
	}
	return envs
}

// begin starts the process and arms its timeout; done tells how it ended.
func begin(c *command, cmd *exec.Cmd, timeoutMs int64) (done chan error, err error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.pgid = cmd.Process.Pid
	c.mu.Unlock()
	var timer *time.Timer
	if timeoutMs > 0 {
		timer = time.AfterFunc(time.Duration(timeoutMs)*time.Millisecond, func() {
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		})
	}
	done = make(chan error, 1)
	go func() {
		err := cmd.Wait()
		if timer != nil {
			timer.Stop()
		}
		done <- err
	}()
	return done, nil
}

// outcome puts the end of a process into the words of status and stream.
func outcome(err error) (code int, evalue, text string) {
	if err == nil {
		return 0, "", ""
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), strconv.Itoa(exit.ExitCode()), exit.Error()
	}
	return -1, err.Error(), err.Error()
}

func runForeground(s *stream, c *command, req *model.RunCommandRequest, cwd string) {
	begun := time.Now()
	cmd := prepare(c, req, cwd)
	base := filepath.Join(os.TempDir(), c.status.Id)
	outFile, err1 := os.OpenFile(base+".stdout", os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644)
	errFile, err2 := os.OpenFile(base+".stderr", os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644)
	if err := firstError(err1, err2); err != nil {
		failed(s, c, err)
		return
	}
	defer outFile.Close()
	defer errFile.Close()
	cmd.Stdout, cmd.Stderr = outFile, errFile
	done, err := begin(c, cmd, req.TimeoutMs)
	if err != nil {
		failed(s, c, err)
		return
	}
	out := &lines{emit: func(t string) { s.text("stdout", t) }}
	errs := &lines{emit: func(t string) { s.text("stderr", t) }}
	var outAt, errAt int64
	read := func() {
		errAt = tail(errFile.Name(), errAt, errs)
		outAt = tail(outFile.Name(), outAt, out)
	}
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			read()
			continue
		case err = <-done:
		}
		break
	}
	read()
	errs.end()
	out.end()
	code, evalue, text := outcome(err)
	c.finish(code, text)
	if err == nil {
		s.send(model.Event{Type: "execution_complete", ExecutionTime: time.Since(begun).Milliseconds()})
		return
	}
	s.send(model.Event{Type: "error", Error: &model.ExecError{
		Ename: "CommandExecError", Evalue: evalue, Traceback: []string{text}}})
}

func failed(s *stream, c *command, err error) {
	c.finish(-1, err.Error())
	s.send(model.Event{Type: "error", Error: &model.ExecError{
		Ename: "CommandExecError", Evalue: err.Error(), Traceback: []string{err.Error()}}})
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// tail feeds what was added to a file since offset at, and returns the new offset.
func tail(name string, at int64, into *lines) int64 {
	f, err := os.Open(name)
	if err != nil {
		return at
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := f.ReadAt(buf, at)
		into.feed(buf[:n])
		at += int64(n)
		if err != nil || n == 0 {
			return at
		}
	}
}

// startBackground answers at once; only the status tells how it ended.
func startBackground(s *stream, c *command, req *model.RunCommandRequest, cwd string) {
	begun := time.Now()
	cmd := prepare(c, req, cwd)
	c.output = filepath.Join(os.TempDir(), c.status.Id+".output")
	file, err := os.OpenFile(c.output, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o644)
	if err != nil {
		failed(s, c, err)
		return
	}
	cmd.Stdout, cmd.Stderr = file, file
	done, err := begin(c, cmd, req.TimeoutMs)
	file.Close()
	if err != nil {
		failed(s, c, err)
		return
	}
	go func() {
		code, _, text := outcome(<-done)
		c.finish(code, text)
	}()
	s.send(model.Event{Type: "execution_complete", ExecutionTime: time.Since(begun).Milliseconds()})
}

func commandStatus(w http.ResponseWriter, id string) {
	c := findCommand(id)
	if c == nil {
		sendError(w, 404, badRequest, "command not found: %s", id)
		return
	}
	sendJSON(w, 200, c.snapshot())
}

// commandLogs sends the merged output from a byte offset on, and says in a
// header where the next one begins.
func commandLogs(w http.ResponseWriter, r *http.Request, id string) {
	c := findCommand(id)
	if c == nil {
		sendError(w, 400, badRequest, "command not found: %s", id)
		return
	}
	if !c.background {
		sendError(w, 400, badRequest, "command %s is not running in background", id)
		return
	}
	at, _ := strconv.ParseInt(r.URL.Query().Get("cursor"), 10, 64)
	if at < 0 {
		at = 0
	}
	f, err := os.Open(c.output)
	if err != nil {
		sendError(w, 500, runtimeError, "error reading command output. %v", err)
		return
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, at, 1<<40))
	if err != nil {
		sendError(w, 500, runtimeError, "error reading command output. %v", err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("EXECD-COMMANDS-TAIL-CURSOR", strconv.FormatInt(at+int64(len(data)), 10))
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Write(data)
}

// interruptCommand ends the process group, gently for three seconds, and
// answers when it is gone.
func interruptCommand(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	if id == "" {
		sendError(w, 400, missingQuery, "missing query parameter 'id'")
		return
	}
	c := findCommand(id)
	if c == nil {
		sendError(w, 500, runtimeError, "error interruptting code context. no such session")
		return
	}
	c.mu.Lock()
	running, pgid := c.status.Running, c.pgid
	c.mu.Unlock()
	if !running || pgid == 0 {
		sendError(w, 500, runtimeError, "error interruptting code context. command session %s is not running", id)
		return
	}
	syscall.Kill(-pgid, syscall.SIGTERM)
	if !groupGone(pgid, termGrace) {
		syscall.Kill(-pgid, syscall.SIGKILL)
		groupGone(pgid, killGrace)
	}
}

func groupGone(pgid int, within time.Duration) bool {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if syscall.Kill(-pgid, 0) == syscall.ESRCH {
			return true
		}
	}
	return false
}
