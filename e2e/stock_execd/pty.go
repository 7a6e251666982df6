package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"stock_execd/model"
)

const (
	replayBytes = 1 << 20
	pieceBytes  = 32 << 10
	exitWins    = 20 * time.Millisecond
	unknownID   = "CONTEXT_NOT_FOUND"
)

// piece is something on its way to a client: a whole frame.
type piece struct {
	op   byte
	data []byte
}

// viewer is the one client of a terminal.
type viewer struct {
	socket *socket
	queue  []piece
	gone   bool
	ended  bool   // nothing is added any more: send what is there, then close with `code`
	code   uint16 // 0: no close frame
	reason string
}

// terminal is a session of /pty: bash behind a terminal or behind pipes, which
// begins with the first client and begins again with one that comes after its end.
type terminal struct {
	id       string
	request  model.PtyRequest
	mu       sync.Mutex
	moved    *sync.Cond // a queue was emptied, a viewer left
	ring     []byte     // the last of the output
	total    uint64     // all of it
	viewer   *viewer
	running  bool
	deleted  bool
	pid      int
	stdin    io.Writer
	master   *os.File // of a terminal; nil in pipe mode
	overtake bool     // in this run the exit is said before the last output
}

var (
	terminalsMu sync.Mutex
	terminals   = map[string]*terminal{}
	pipeRuns    uint64
)

func newUUID() string {
	id := newID()
	return id[:8] + "-" + id[8:12] + "-4" + id[13:16] + "-a" + id[17:20] + "-" + id[20:]
}

// optional decodes a body that may be empty.
func optional(w http.ResponseWriter, r *http.Request, into interface{}) bool {
	err := json.NewDecoder(r.Body).Decode(into)
	if err != nil && err != io.EOF {
		sendError(w, 400, badRequest, "error parsing request, MAYBE invalid body format. %v", err)
		return false
	}
	return true
}

func makeTerminal(w http.ResponseWriter, r *http.Request) {
	t := &terminal{id: newUUID()}
	if !optional(w, r, &t.request) {
		return
	}
	t.moved = sync.NewCond(&t.mu)
	terminalsMu.Lock()
	terminals[t.id] = t
	terminalsMu.Unlock()
	sendJSON(w, http.StatusCreated, map[string]string{"session_id": t.id})
}

func findTerminal(w http.ResponseWriter, id string) *terminal {
	terminalsMu.Lock()
	t := terminals[id]
	terminalsMu.Unlock()
	if t == nil {
		sendError(w, 404, unknownID, "pty session %s not found", id)
	}
	return t
}

func terminalStatus(w http.ResponseWriter, id string) {
	if t := findTerminal(w, id); t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		sendJSON(w, 200, model.PtyStatus{SessionId: t.id, Running: t.running, OutputOffset: t.total})
	}
}

// removeTerminal kills the process group, and no more: what moved to another
// session lives on.
func removeTerminal(w http.ResponseWriter, id string) {
	t := findTerminal(w, id)
	if t == nil {
		return
	}
	terminalsMu.Lock()
	delete(terminals, id)
	terminalsMu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deleted = true
	if t.running {
		syscall.Kill(-t.pid, syscall.SIGKILL)
	}
}

// attachTerminal is the upgrade: the client gets what it missed, then what comes.
func attachTerminal(w http.ResponseWriter, r *http.Request, id string) {
	t := findTerminal(w, id)
	if t == nil {
		return
	}
	query := r.URL.Query()
	since, _ := strconv.ParseUint(query.Get("since"), 10, 64)
	t.mu.Lock()
	taken := t.viewer != nil && query.Get("takeover") != "1"
	t.mu.Unlock()
	if taken {
		sendError(w, http.StatusConflict, "ALREADY_CONNECTED", "another client is already connected to pty session %s", id)
		return
	}
	s := upgrade(w, r)
	if s == nil {
		return
	}
	pipes := query.Get("pty") == "0"
	v := &viewer{socket: s}
	if code, err := t.admit(v, pipes, since); err != nil {
		s.say(model.PtyFrame{Type: "error", Error: err.Error(), Code: code})
		s.conn.Close()
		return
	}
	go v.write(t)
	t.read(v)
}

// admit makes v the viewer, in place of who is there, and starts bash if it is not running.
func (t *terminal) admit(v *viewer, pipes bool, since uint64) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deleted {
		return "SESSION_GONE", errors.New("the session is gone")
	}
	if !t.running {
		if err := t.start(pipes); err != nil {
			return "START_FAILED", err
		}
	}
	if old := t.viewer; old != nil {
		old.queue, old.ended, old.code, old.reason = nil, true, 4001, "TAKEN_OVER"
	}
	t.viewer = v
	if begin := t.total - uint64(len(t.ring)); since < t.total {
		if since < begin {
			since = begin
		}
		head := binary.BigEndian.AppendUint64([]byte{3}, since)
		v.queue = append(v.queue, piece{opBinary, append(head, t.ring[since-begin:]...)})
	}
	mode := "pty"
	if t.master == nil {
		mode = "pipe"
	}
	v.say(model.PtyFrame{Type: "connected", SessionId: t.id, Mode: mode})
	t.moved.Broadcast()
	return "", nil
}

// say queues a text frame; the lock is held.
func (v *viewer) say(f model.PtyFrame) {
	text, _ := json.Marshal(f)
	v.queue = append(v.queue, piece{opText, append(text, '\n')})
}

// write sends what is queued until it is over, and pings.
func (v *viewer) write(t *terminal) {
	done := make(chan struct{})
	defer close(done)
	go func() {
		for tick := time.NewTicker(socketPing); ; {
			select {
			case <-tick.C:
				v.socket.send(opPing, nil)
			case <-done:
				tick.Stop()
				return
			}
		}
	}()
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		for len(v.queue) == 0 && !v.ended && !v.gone {
			t.moved.Wait()
		}
		if v.gone {
			return
		}
		if len(v.queue) == 0 {
			t.mu.Unlock()
			v.socket.end(v.code, v.reason)
			t.mu.Lock()
			t.leave(v)
			return
		}
		p := v.queue[0]
		t.mu.Unlock()
		err := v.socket.send(p.op, p.data)
		t.mu.Lock()
		if len(v.queue) > 0 {
			v.queue = v.queue[1:]
		}
		if err != nil {
			t.leave(v)
		}
		t.moved.Broadcast()
	}
}

// leave: v is no longer the viewer. The lock is held.
func (t *terminal) leave(v *viewer) {
	v.gone = true
	if t.viewer == v {
		t.viewer = nil
	}
	t.moved.Broadcast()
}

// read does what the client says. A write to bash that does not end keeps it
// from hearing anything else, and its time runs out meanwhile; a client that
// was not heard for too long is let go of, with its connection left open.
func (t *terminal) read(v *viewer) {
	v.socket.conn.SetReadDeadline(time.Now().Add(heardLimit))
	for {
		op, message, err := v.socket.next()
		if err != nil {
			var timeout net.Error
			late := errors.As(err, &timeout) && timeout.Timeout()
			t.mu.Lock()
			t.leave(v)
			t.mu.Unlock()
			if late {
				time.AfterFunc(lingerLimit, func() { v.socket.conn.Close() })
			} else {
				v.socket.conn.Close()
			}
			return
		}
		if op == opText {
			t.control(v, message)
		} else if len(message) > 0 && message[0] == 0 {
			t.feed(v, message[1:])
		}
	}
}

func (t *terminal) feed(v *viewer, data []byte) {
	t.mu.Lock()
	to := t.stdin
	t.mu.Unlock()
	if _, err := to.Write(data); err != nil {
		v.socket.say(model.PtyFrame{Type: "error", Error: err.Error(), Code: "STDIN_WRITE_FAILED"})
	}
}

var signalNames = map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM,
	"SIGKILL": syscall.SIGKILL, "SIGQUIT": syscall.SIGQUIT, "SIGHUP": syscall.SIGHUP}

func (t *terminal) control(v *viewer, message []byte) {
	var f model.PtyControl
	invalid := func(format string, args ...interface{}) {
		v.socket.say(model.PtyFrame{Type: "error", Error: fmt.Sprintf(format, args...), Code: "INVALID_FRAME"})
	}
	if err := json.Unmarshal(message, &f); err != nil {
		invalid("invalid frame: %v", err)
		return
	}
	t.mu.Lock()
	pid, running, master := t.pid, t.running, t.master
	t.mu.Unlock()
	switch f.Type {
	case "ping":
		v.socket.say(model.PtyFrame{Type: "pong"})
	case "stdin":
		t.feed(v, []byte(f.Data))
	case "resize":
		if master != nil {
			setSize(master, f.Cols, f.Rows)
		}
	case "signal":
		// To bash's own group: what a terminal has in its foreground has another.
		if number, ok := signalNames[f.Signal]; !ok {
			invalid("unknown signal %q", f.Signal)
		} else if running {
			syscall.Kill(-pid, number)
		}
	default:
		invalid("unknown frame type %q", f.Type)
	}
}

// start runs bash. The lock is held.
func (t *terminal) start(pipes bool) error {
	bash, err := exec.LookPath("bash")
	if err != nil {
		return err
	}
	argv := []string{"bash", "--norc", "--noprofile"}
	if t.request.Command != "" {
		argv = []string{"bash", "-c", t.request.Command}
	}
	attr := &os.ProcAttr{Env: append(os.Environ(), envsFile()...), Dir: t.request.Cwd}
	outs := map[byte]*os.File{}
	var theirs []*os.File
	if pipes {
		in, inOurs, err1 := os.Pipe()
		outOurs, out, err2 := os.Pipe()
		errOurs, errs, err3 := os.Pipe()
		if err := firstError(err1, err2, err3); err != nil {
			return err
		}
		theirs = []*os.File{in, out, errs}
		outs[1], outs[2] = outOurs, errOurs
		t.master, t.stdin = nil, inOurs
		attr.Sys = &syscall.SysProcAttr{Setpgid: true}
		every := uint64(overtakeEvery)
		t.overtake = every > 0 && atomic.AddUint64(&pipeRuns, 1)%every == 0
	} else {
		master, slave, err := openTerminal()
		if err != nil {
			return err
		}
		theirs = []*os.File{slave, slave, slave}
		outs[1] = master
		t.master, t.stdin, t.overtake = master, master, false
		attr.Sys = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
	attr.Files = theirs
	process, err := os.StartProcess(bash, argv, attr)
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		for _, f := range outs {
			f.Close()
		}
		return err
	}
	t.pid, t.running = process.Pid, true
	go t.run(process, outs)
	return nil
}

// run moves the output until bash has ended, and says so.
func (t *terminal) run(process *os.Process, outs map[byte]*os.File) {
	var pumps sync.WaitGroup
	var moves uint64
	for kind, f := range outs {
		pumps.Add(1)
		go func(kind byte, f *os.File) {
			defer pumps.Done()
			t.pump(kind, f, &moves)
		}(kind, f)
	}
	state, _ := process.Wait()
	if !t.overtake {
		// What bash left behind may hold the pipes for ever: wait as long as something comes.
		done := make(chan struct{})
		go func() { pumps.Wait(); close(done) }()
		for before := uint64(0); ; before = atomic.LoadUint64(&moves) {
			select {
			case <-done:
			case <-time.After(200 * time.Millisecond):
				if atomic.LoadUint64(&moves) != before {
					continue
				}
			}
			break
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = false
	if v := t.viewer; v != nil {
		code := state.ExitCode()
		v.say(model.PtyFrame{Type: "exit", ExitCode: &code})
		v.ended, v.code, v.reason = true, 1000, "process exited"
		t.viewer = nil
	}
	t.moved.Broadcast()
	if closer, ok := t.stdin.(io.Closer); ok {
		closer.Close()
	}
}

// pump reads one output of bash and hands it on, no faster than the viewer
// takes it. Where the exit is to win, the last piece is held back for a moment.
func (t *terminal) pump(kind byte, f *os.File, moves *uint64) {
	defer f.Close()
	pieces := make(chan []byte)
	go func() {
		defer close(pieces)
		for {
			data := make([]byte, 1+pieceBytes)
			n, err := f.Read(data[1:])
			if data[0] = kind; n > 0 {
				atomic.AddUint64(moves, 1)
				pieces <- data[:1+n]
			}
			if err != nil {
				return
			}
		}
	}()
	for data := range pieces {
		for more := t.overtake; more; {
			select {
			case next, ok := <-pieces:
				if more = ok; ok {
					t.deliver(data)
					data = next
				} else {
					time.Sleep(exitWins)
				}
			case <-time.After(exitWins):
				more = false
			}
		}
		t.deliver(data)
	}
}

func (t *terminal) deliver(data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += uint64(len(data) - 1)
	t.ring = append(t.ring, data[1:]...)
	if over := len(t.ring) - replayBytes; over > 0 {
		t.ring = append([]byte(nil), t.ring[over:]...)
	}
	v := t.viewer
	if v == nil || v.ended {
		return
	}
	v.queue = append(v.queue, piece{opBinary, data})
	t.moved.Broadcast()
	for t.viewer == v && len(v.queue) > 0 && !v.gone {
		t.moved.Wait()
	}
}

// openTerminal is a new pair of 24 by 80.
func openTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	var n, unlock int32
	err = firstError(ioctl(master, syscall.TIOCSPTLCK, &unlock), ioctl(master, syscall.TIOCGPTN, &n))
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(n)), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, err
	}
	setSize(master, 80, 24)
	return master, slave, nil
}
