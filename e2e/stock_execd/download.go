package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func downloadFile(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	asked := query.Get("path")
	if asked == "" {
		sendError(w, 400, missingQuery, "missing query parameter 'path'")
		return
	}
	path, err := expandPath(asked)
	if err != nil {
		sendError(w, 500, runtimeError, "error resolving file path: %s. %v", asked, err)
		return
	}
	f, err := os.Open(path)
	if err != nil {
		sendFileError(w, err)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		sendFileError(w, err)
		return
	}
	if query.Has("offset") || query.Has("limit") {
		sendLines(w, r, f)
		return
	}
	w.Header().Set("Content-Disposition", disposition(filepath.Base(path)))
	if info.IsDir() {
		http.Error(w, "seeker can't seek", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if asked := r.Header.Get("Range"); asked != "" {
		from, length, kind := parseRange(asked, info.Size())
		switch kind {
		case rangeGood:
			sendRange(w, f, from, length, info.Size())
			return
		case rangeMalformed:
			// The length of the file is announced and a short body sent: the
			// client is left waiting until the connection closes.
			w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			io.WriteString(w, `{"code":"UNKNOWN"}`)
			return
		case rangePastEnd:
			w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", info.Size()))
			http.Error(w, "invalid range: failed to overlap", http.StatusRequestedRangeNotSatisfiable)
			return
		}
	}
	http.ServeContent(w, r, filepath.Base(path), info.ModTime(), f)
}

func sendFileError(w http.ResponseWriter, err error) {
	if errors.Is(err, os.ErrNotExist) {
		sendError(w, 404, fileNotFound, "file not found. %v", err)
		return
	}
	sendError(w, 500, runtimeError, "error accessing file: %v", err)
}

// disposition puts a name of ASCII bytes into the header as it is, so a control
// byte in it makes an answer that strict readers, the forwarder among them, refuse.
func disposition(name string) string {
	for i := 0; i < len(name); i++ {
		if name[i] >= 0x80 {
			escaped := url.PathEscape(name)
			return fmt.Sprintf(`attachment; filename="%s"; filename*=UTF-8''%s`, escaped, escaped)
		}
	}
	return `attachment; filename="` + name + `"`
}

type rangeKind int

const (
	rangeGood rangeKind = iota
	rangeMalformed
	rangePastEnd
)

// parseRange looks at the first range only; any others are not served.
func parseRange(text string, size int64) (from, length int64, kind rangeKind) {
	spec := strings.TrimPrefix(text, "bytes=")
	dash := strings.IndexByte(spec, '-')
	if spec == text || dash < 0 {
		return 0, 0, rangeMalformed
	}
	if comma := strings.IndexByte(spec, ','); comma >= 0 {
		spec = spec[:comma]
		dash = strings.IndexByte(spec, '-')
		if dash < 0 {
			return 0, 0, rangeMalformed
		}
	}
	first, last := strings.TrimSpace(spec[:dash]), strings.TrimSpace(spec[dash+1:])
	if first == "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return 0, 0, rangeMalformed
		}
		if n > size {
			n = size
		}
		return size - n, n, rangeGood
	}
	from, err := strconv.ParseInt(first, 10, 64)
	if err != nil || from < 0 {
		return 0, 0, rangeMalformed
	}
	to := size - 1
	if last != "" {
		if to, err = strconv.ParseInt(last, 10, 64); err != nil || to < from {
			return 0, 0, rangeMalformed
		}
	}
	if from >= size {
		return 0, 0, rangePastEnd
	}
	if to >= size {
		to = size - 1
	}
	return from, to - from + 1, rangeGood
}

func sendRange(w http.ResponseWriter, f *os.File, from, length, size int64) {
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+length-1, size))
	w.Header().Set("Content-Length", strconv.FormatInt(length, 10))
	w.WriteHeader(http.StatusPartialContent)
	io.Copy(w, io.NewSectionReader(f, from, length))
}

// sendLines serves offset and limit, which count lines from 1: joined by LF, none at the end.
func sendLines(w http.ResponseWriter, r *http.Request, f *os.File) {
	query := r.URL.Query()
	if r.Header.Get("Range") != "" {
		sendError(w, 400, badRequest, "offset and limit cannot be used together with Range")
		return
	}
	number := map[string]int64{"offset": 1, "limit": 1 << 62}
	for name := range number {
		if !query.Has(name) {
			continue
		}
		n, err := strconv.ParseInt(query.Get(name), 10, 64)
		if err != nil || n < 1 {
			sendError(w, 400, badRequest, "invalid query parameter '%s': %s", name, query.Get(name))
			return
		}
		number[name] = n
	}
	var picked []string
	in := bufio.NewScanner(f)
	in.Buffer(nil, 64<<20)
	for at := int64(1); in.Scan() && int64(len(picked)) < number["limit"]; at++ {
		if at >= number["offset"] {
			picked = append(picked, in.Text())
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, strings.Join(picked, "\n"))
}
