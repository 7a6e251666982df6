// Command stock_execd plays the stock in-sandbox daemon of OpenSandbox for
// tests: the commands, bash sessions, terminals, files and directories API on
// port 44772, with the losses and quirks that a client has to live with. It is
// a stand-in, written from the behaviour seen on the wire; the code interpreter
// is left out.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"

	"stock_execd/model"
)

const tokenHeader = "X-EXECD-ACCESS-TOKEN"

var (
	host = flag.String("host", "", "address to listen on, all when empty")
	port = flag.Int("port", 44772, "port to listen on; 0 is a free one, named on stderr")
)

func main() {
	flag.Parse()
	handler := withToken(os.Getenv("EXECD_ACCESS_TOKEN"), http.HandlerFunc(route))
	listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", *host, *port))
	if err != nil {
		log.Fatal(err)
	}
	if *port == 0 {
		fmt.Fprintf(os.Stderr, "stock_execd: listening on port %d\n", listener.Addr().(*net.TCPAddr).Port)
	}
	log.Fatal(http.Serve(listener, handler))
}

// withToken guards every path, /ping and /proxy too, when a token is set.
func withToken(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token != "" && r.Header.Get(tokenHeader) != token {
			sendJSON(w, http.StatusUnauthorized,
				map[string]string{"error": "Unauthorized: invalid or missing header " + tokenHeader})
			return
		}
		next.ServeHTTP(w, r)
	})
}

var routes = map[string]http.HandlerFunc{
	"GET /ping":               func(http.ResponseWriter, *http.Request) {},
	"POST /command":           runCommand,
	"DELETE /command":         interruptCommand,
	"POST /files/upload":      uploadFiles,
	"GET /files/download":     downloadFile,
	"GET /files/info":         filesInfo,
	"GET /files/search":       searchFiles,
	"POST /files/mv":          moveFiles,
	"POST /files/replace":     replaceInFiles,
	"POST /files/permissions": changePermissions,
	"DELETE /files":           removeFiles,
	"GET /directories/list":   listDirectory,
	"POST /directories":       makeDirectories,
	"DELETE /directories":     removeDirectories,
	"POST /session":           makeSession,
	"POST /pty":               makeTerminal,
	"GET /metrics":            metricsOnce,
	"GET /metrics/watch":      metricsWatch,
}

func route(w http.ResponseWriter, r *http.Request) {
	if rest := strings.TrimPrefix(r.URL.EscapedPath(), "/proxy/"); rest != r.URL.EscapedPath() {
		forward(w, r, rest)
		return
	}
	if handler := routes[r.Method+" "+r.URL.Path]; handler != nil {
		handler(w, r)
		return
	}
	words := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if r.Method == "GET" && len(words) == 3 && words[0] == "command" {
		switch {
		case words[1] == "status":
			commandStatus(w, words[2])
			return
		case words[2] == "logs":
			commandLogs(w, r, words[1])
			return
		}
	}
	if routeLiving(w, r, words) {
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprint(w, "404 page not found")
}

// routeLiving has the calls about one session or terminal.
func routeLiving(w http.ResponseWriter, r *http.Request, words []string) bool {
	if len(words) < 2 || len(words) > 3 {
		return false
	}
	switch r.Method + " " + words[0] + "/" + strings.Join(words[2:], "") {
	case "DELETE session/":
		removeSession(w, words[1])
	case "POST session/run":
		runInSession(w, r, words[1])
	case "GET pty/":
		terminalStatus(w, words[1])
	case "DELETE pty/":
		removeTerminal(w, words[1])
	case "GET pty/ws":
		attachTerminal(w, r, words[1])
	default:
		return false
	}
	return true
}

func sendJSON(w http.ResponseWriter, status int, body interface{}) {
	text, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(text)
}

// The codes of error answers.
const (
	badRequest   = "INVALID_REQUEST_BODY"
	missingQuery = "MISSING_QUERY"
	runtimeError = "RUNTIME_ERROR"
	fileNotFound = "FILE_NOT_FOUND"
	badFile      = "INVALID_FILE"
	badContent   = "INVALID_FILE_CONTENT"
	badMetadata  = "INVALID_FILE_METADATA"
)

func sendError(w http.ResponseWriter, status int, code, format string, args ...interface{}) {
	sendJSON(w, status, model.Problem{Code: code, Message: fmt.Sprintf(format, args...)})
}

// writeError is the object alone, where the status is long sent.
func writeError(w io.Writer, code, message string) {
	text, _ := json.Marshal(model.Problem{Code: code, Message: message})
	w.Write(text)
}

// decode reads the first JSON value of the body, whatever its Content-Type;
// what follows it is ignored.
func decode(w http.ResponseWriter, r *http.Request, into interface{}) bool {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		sendError(w, 400, badRequest, "error parsing request, MAYBE invalid body format. %v", err)
		return false
	}
	return true
}
