package main

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"stock_execd/model"
)

const (
	pingEvery = 3 * time.Second
	holdOpen  = time.Second // between the final event and the end of the response
)

// stream writes a command's events: one line of JSON and two LF each, which is
// not standard server-sent events. Errors of writing are ignored: a client
// that goes away changes nothing.
type stream struct {
	mu sync.Mutex
	w  http.ResponseWriter
}

func startStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return &stream{w: w}
}

func (s *stream) send(e model.Event) {
	e.Timestamp = time.Now().UnixMilli()
	line, err := json.Marshal(e)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.w.Write(append(line, '\n', '\n'))
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

func (s *stream) text(kind, text string) { s.send(model.Event{Type: kind, Text: text}) }

// pings sends one ping now (or, when late, one only after 300 ms, by when a
// short command has sent its final event) and one every three seconds until
// the returned function is called.
func (s *stream) pings(late bool) (stop func()) {
	done := make(chan struct{})
	ended := make(chan struct{})
	if !late {
		s.text("ping", "pong")
	}
	go func() {
		defer close(ended)
		if late {
			select {
			case <-time.After(300 * time.Millisecond):
				s.text("ping", "pong")
			case <-done:
				return
			}
		}
		tick := time.NewTicker(pingEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.text("ping", "pong")
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

// lines cuts growing output into lines. LF, CR LF and CR all end a line, and
// the terminator is dropped, so the reader cannot tell whether the last line
// had one; an empty line is sent as "\n".
type lines struct {
	part    []byte
	afterCR bool
	emit    func(string)
}

func (l *lines) feed(data []byte) {
	for _, c := range data {
		skip := l.afterCR && c == '\n'
		l.afterCR = c == '\r'
		switch {
		case skip:
		case c == '\n' || c == '\r':
			l.line()
		default:
			l.part = append(l.part, c)
		}
	}
}

func (l *lines) line() {
	if len(l.part) == 0 {
		l.emit("\n")
	} else {
		l.emit(string(l.part))
	}
	l.part = l.part[:0]
}

func (l *lines) end() {
	if len(l.part) > 0 {
		l.line()
	}
}
