package main

import (
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

var proxyTransport = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}

// steadyBody is a request body that was read to its end when the server closed
// it. The server closes it as soon as an answer is begun, and the transport may
// ask for the end of the body only then; taking that for a failure would cut
// the answer, about once in three hundred requests.
type steadyBody struct{ io.ReadCloser }

func (b steadyBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == http.ErrBodyReadAfterClose {
		err = io.EOF
	}
	return n, err
}

// wholeClose is an upgraded connection that cannot be closed one way only: the
// end of either direction is the end of both.
type wholeClose struct{ io.ReadWriteCloser }

func closeWhole(answer *http.Response) error {
	if both, ok := answer.Body.(io.ReadWriteCloser); ok && answer.StatusCode == http.StatusSwitchingProtocols {
		answer.Body = wholeClose{both}
	}
	return nil
}

// forward hands /proxy/PORT/REST to 127.0.0.1:PORT as /REST, any method and
// WebSocket upgrades included. The daemon's own port is a target like any
// other: the direct endpoint that the server gives out *is* /proxy/44772.
func forward(w http.ResponseWriter, r *http.Request, rest string) {
	port, path := rest, "/"
	if cut := strings.IndexByte(rest, '/'); cut >= 0 {
		port, path = rest[:cut], rest[cut:]
	}
	if port == "" {
		http.Error(w, "port is required", http.StatusBadRequest)
		return
	}
	plain, err := url.PathUnescape(path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	proxy := &httputil.ReverseProxy{
		Director: func(out *http.Request) {
			out.URL.Scheme = "http"
			out.URL.Host = "127.0.0.1:" + port
			out.URL.Path, out.URL.RawPath = plain, path
			out.Host = out.URL.Host
			if out.Body != nil {
				out.Body = steadyBody{out.Body}
			}
		},
		Transport:      proxyTransport,
		FlushInterval:  -1,
		ModifyResponse: closeWhole,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "Bad Gateway", http.StatusBadGateway)
		},
	}
	proxy.ServeHTTP(w, r)
}
