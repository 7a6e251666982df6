package main

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// The server's side of RFC 6455, as much as the terminals need.

const (
	opContinuation = 0
	opText         = 1
	opBinary       = 2
	opClose        = 8
	opPing         = 9
	opPong         = 10

	socketGUID    = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
	longestSocket = 64 << 20 // of one message, held in memory
)

var (
	errSocketClosed = errors.New("websocket closed")
	errFrame        = errors.New("a frame that is not allowed")
)

type socket struct {
	conn net.Conn
	in   *bufio.Reader
	mu   sync.Mutex // of writing
}

func hasToken(field, token string) bool {
	for _, word := range strings.Split(field, ",") {
		if strings.EqualFold(strings.TrimSpace(word), token) {
			return true
		}
	}
	return false
}

// upgrade answers 101; nil: it was no handshake, and was refused.
func upgrade(w http.ResponseWriter, r *http.Request) *socket {
	key := r.Header.Get("Sec-WebSocket-Key")
	if !hasToken(r.Header.Get("Connection"), "upgrade") || !hasToken(r.Header.Get("Upgrade"), "websocket") ||
		r.Header.Get("Sec-WebSocket-Version") != "13" || key == "" {
		w.Header().Set("Sec-Websocket-Version", "13")
		http.Error(w, "Bad Request", http.StatusBadRequest)
		return nil
	}
	conn, in, err := w.(http.Hijacker).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return nil
	}
	sum := sha1.Sum([]byte(key + socketGUID))
	s := &socket{conn: conn, in: in.Reader}
	conn.SetDeadline(time.Time{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw([]byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
		base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n"))
	return s
}

// raw writes within the time that a client gets; one that takes too long is
// cut off without a close frame. The lock is held.
func (s *socket) raw(data []byte) error {
	s.conn.SetWriteDeadline(time.Now().Add(pipeWriteLimit))
	_, err := s.conn.Write(data)
	if err != nil {
		s.conn.Close()
	}
	return err
}

func (s *socket) send(op byte, data []byte) error {
	head := []byte{0x80 | op, byte(len(data))}
	switch {
	case len(data) > 65535:
		head[1] = 127
		head = binary.BigEndian.AppendUint64(head, uint64(len(data)))
	case len(data) > 125:
		head[1] = 126
		head = binary.BigEndian.AppendUint16(head, uint16(len(data)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raw(append(head, data...))
}

// say sends a text frame, which ends in LF.
func (s *socket) say(v interface{}) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.send(opText, append(text, '\n'))
}

func (s *socket) end(code uint16, reason string) {
	s.send(opClose, append(binary.BigEndian.AppendUint16(nil, code), reason...))
	s.conn.Close()
}

// frame reads one frame, its payload unmasked.
func (s *socket) frame() (op byte, final bool, data []byte, err error) {
	var head [14]byte
	if _, err = io.ReadFull(s.in, head[:2]); err != nil {
		return
	}
	op, final = head[0]&15, head[0]&0x80 != 0
	n := uint64(head[1] & 127)
	// The original's library refuses what the RFC forbids before it reads on.
	if head[0]&0x70 != 0 || head[1]&0x80 == 0 || (op > opBinary && op < opClose) || op > opPong ||
		(op >= opClose && (n > 125 || !final)) {
		return 0, false, nil, errFrame
	}
	extra := map[uint64]int{126: 2, 127: 8}[n]
	if _, err = io.ReadFull(s.in, head[2:2+extra+4]); err != nil {
		return
	}
	switch extra {
	case 2:
		n = uint64(binary.BigEndian.Uint16(head[2:]))
	case 8:
		n = binary.BigEndian.Uint64(head[2:])
	}
	if n > longestSocket {
		return 0, false, nil, errFrame
	}
	mask := head[2+extra : 2+extra+4]
	data = make([]byte, n)
	_, err = io.ReadFull(s.in, data)
	for i := range data {
		data[i] ^= mask[i&3]
	}
	return
}

// next is the next whole message. Pings are answered and pongs heard
// underneath; every frame gives the client its time anew, but the time runs
// while nobody reads.
func (s *socket) next() (op byte, message []byte, err error) {
	for {
		o, final, data, err := s.frame()
		if err != nil {
			return 0, nil, err
		}
		s.conn.SetReadDeadline(time.Now().Add(heardLimit))
		switch {
		case o == opPing:
			s.send(opPong, data)
			continue
		case o == opPong:
			continue
		case o == opClose:
			if len(data) < 2 {
				data = nil
			}
			s.send(opClose, data)
			s.conn.Close()
			return 0, nil, errSocketClosed
		case o == opContinuation && op == 0, o != opContinuation && op != 0, o > opBinary:
			return 0, nil, errFrame
		case o != opContinuation:
			op = o
		}
		if message = append(message, data...); len(message) > longestSocket {
			return 0, nil, errFrame
		}
		if final {
			return op, message, nil
		}
	}
}
