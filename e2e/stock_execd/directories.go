package main

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"stock_execd/model"
)

func listDirectory(w http.ResponseWriter, r *http.Request) {
	root, ok := queryPath(w, r)
	if !ok {
		return
	}
	depth := 1
	if text := r.URL.Query().Get("depth"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			sendError(w, 400, badRequest, "invalid query parameter 'depth': %s", text)
			return
		}
		depth = n
	}
	info, err := os.Lstat(root)
	switch {
	case err != nil:
		sendFileError(w, err)
		return
	case info.Mode()&os.ModeSymlink != 0:
		sendError(w, 400, badRequest, "path is a symbolic link, refusing to traverse: %s", root)
		return
	case !info.IsDir():
		sendError(w, 400, badRequest, "path is not a directory: %s", root)
		return
	}
	entries := []model.FileInfo{}
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return nil
		}
		below, _ := filepath.Rel(root, path)
		level := strings.Count(below, "/") + 1
		if level <= depth {
			if info, err := d.Info(); err == nil {
				entries = append(entries, describe(path, info))
			}
		}
		if d.IsDir() && level >= depth {
			return fs.SkipDir
		}
		return nil
	})
	sendJSON(w, 200, entries)
}

// makeDirectories makes parents too; the mode is for a new directory only.
func makeDirectories(w http.ResponseWriter, r *http.Request) {
	var items map[string]model.Permission
	if !decode(w, r, &items) {
		return
	}
	for asked, item := range items {
		path, ok := resolved(w, asked)
		if !ok {
			return
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			continue
		}
		err := os.MkdirAll(path, 0o755)
		if err == nil {
			err = setPermission(path, item)
		}
		if err != nil {
			sendError(w, 500, runtimeError, "error accessing file: %v", err)
			return
		}
	}
}

// removeDirectories is rm -rf: plain files go too, and a missing path is no error.
func removeDirectories(w http.ResponseWriter, r *http.Request) {
	for _, asked := range r.URL.Query()["path"] {
		path, ok := resolved(w, asked)
		if !ok {
			return
		}
		if err := os.RemoveAll(path); err != nil {
			sendError(w, 500, runtimeError, "error removing directory %s. %v", asked, err)
			return
		}
	}
}
