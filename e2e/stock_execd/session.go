package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"stock_execd/model"
)

const (
	longestLine  = 16 << 20
	envBegin     = "__ENV_DUMP_START__"
	envEnd       = "__ENV_DUMP_END__"
	exitMark     = "__EXIT_CODE__:"
	folderMark   = "__PWD__:"
	sessionLimit = 24 * time.Hour
)

// bashSession is not a process but what the last one left behind: each run is
// a new bash with the exported variables and the folder of the one before it.
type bashSession struct {
	mu      sync.Mutex // one run at a time
	exports string
	folder  string
}

var (
	sessionsMu sync.Mutex
	sessions   = map[string]*bashSession{}
)

func makeSession(w http.ResponseWriter, r *http.Request) {
	var req model.SessionRequest
	if !optional(w, r, &req) {
		return
	}
	if req.Cwd != "" {
		if err := os.MkdirAll(req.Cwd, 0o755); err != nil {
			sendError(w, 500, runtimeError, "error creating session. %v", err)
			return
		}
	}
	id := newUUID()
	sessionsMu.Lock()
	sessions[id] = &bashSession{folder: req.Cwd}
	sessionsMu.Unlock()
	sendJSON(w, 200, map[string]string{"session_id": id})
}

func removeSession(w http.ResponseWriter, id string) {
	sessionsMu.Lock()
	_, there := sessions[id]
	delete(sessions, id)
	sessionsMu.Unlock()
	if !there {
		sendError(w, 404, unknownID, "session %s not found", id)
	}
}

func runInSession(w http.ResponseWriter, r *http.Request, id string) {
	var req model.RunInSessionRequest
	if !decode(w, r, &req) {
		return
	}
	sessionsMu.Lock()
	b := sessions[id]
	sessionsMu.Unlock()
	switch {
	case req.Command == "":
		sendError(w, 400, badRequest, "invalid request, validation error Key: 'RunInSessionRequest.Command' "+
			"Error:Field validation for 'Command' failed on the 'required' tag")
		return
	case b == nil:
		sendError(w, 500, runtimeError, "error running in session. context not found")
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := startStream(w)
	s.text("init", id)
	stop := s.pings(false)
	begun := time.Now()
	ended, err := b.run(s, &req)
	stop()
	if err != nil {
		// A bare object at the end of a stream that began with 200.
		writeError(w, runtimeError, "error running in session. "+err.Error())
		return
	}
	if _, evalue, text := outcome(ended); ended != nil {
		s.send(model.Event{Type: "error", Error: &model.ExecError{
			Ename: "CommandExecError", Evalue: evalue, Traceback: []string{text}}})
		return
	}
	s.send(model.Event{Type: "execution_complete", ExecutionTime: time.Since(begun).Milliseconds()})
}

// script runs the command between what was left behind and what is to be left.
func (b *bashSession) script(req *model.RunInSessionRequest) string {
	folder := b.folder
	if req.Cwd != "" {
		folder = req.Cwd
	}
	text := b.exports
	if folder != "" {
		text += "cd " + quoted(folder) + "\n"
	}
	return text + "trap '__code=$?; echo; echo " + envBegin + "; export -p; echo " + envEnd +
		"; echo \"" + folderMark + "$PWD\"; echo \"" + exitMark + "$__code\"; exit $__code' EXIT\n" + req.Command + "\n"
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// run is one bash. ended tells how it ended; err is a failure of the daemon's,
// a timeout among them, which is found out when the output has ended.
func (b *bashSession) run(s *stream, req *model.RunInSessionRequest) (ended, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	cmd := exec.Command("bash", "--norc", "--noprofile", "-c", b.script(req))
	cmd.Env = append(os.Environ(), envsFile()...)
	cmd.Stdout, cmd.Stderr = write, write
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	write.Close()
	if err != nil {
		return nil, err
	}
	limit := sessionLimit
	if req.TimeoutMs > 0 {
		limit = time.Duration(req.TimeoutMs) * time.Millisecond
	}
	// Only bash is killed: who holds the pipe is waited for all the same.
	late := make(chan struct{})
	timer := time.AfterFunc(limit, func() { close(late); cmd.Process.Kill() })
	err = b.read(s, bufio.NewScanner(read))
	ended = cmd.Wait()
	timer.Stop()
	select {
	case <-late:
		return nil, fmt.Errorf("timeout after %v", limit)
	default:
	}
	return ended, err
}

// read emits lines and takes out what the script wrote for the next run.
func (b *bashSession) read(s *stream, in *bufio.Scanner) error {
	in.Buffer(make([]byte, 64<<10), longestLine)
	var exports strings.Builder
	for inside := false; in.Scan(); {
		switch line := in.Text(); {
		case line == envBegin:
			inside = true
			exports.Reset()
		case line == envEnd:
			inside = false
			b.exports = exports.String()
		case inside:
			exports.WriteString(line + "\n")
		case strings.HasPrefix(line, folderMark):
			b.folder = line[len(folderMark):]
		case line == "" || strings.HasPrefix(line, exitMark):
		default:
			s.text("stdout", line)
		}
	}
	return in.Err()
}
