package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"stock_execd/model"
)

func filesInfo(w http.ResponseWriter, r *http.Request) {
	entries := map[string]model.FileInfo{}
	for _, asked := range r.URL.Query()["path"] {
		path, err := expandPath(asked)
		if err != nil {
			sendError(w, 500, runtimeError, "error resolving file path: %s. %v", asked, err)
			return
		}
		info, err := os.Lstat(path)
		if os.IsNotExist(err) {
			sendError(w, 404, fileNotFound, "file not found. file not found: %s: %v", path, err)
			return
		}
		if err != nil {
			sendFileError(w, err)
			return
		}
		entries[asked] = describe(path, info)
	}
	sendJSON(w, 200, entries)
}

// searchFiles walks the whole tree and matches the base name only; directories are not listed.
func searchFiles(w http.ResponseWriter, r *http.Request) {
	root, ok := queryPath(w, r)
	if !ok {
		return
	}
	pattern := r.URL.Query().Get("pattern")
	if pattern == "" {
		pattern = "**"
	}
	if _, err := os.Stat(root); err != nil {
		sendFileError(w, err)
		return
	}
	found := []model.FileInfo{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		match, err := filepath.Match(pattern, d.Name())
		if err != nil {
			return err
		}
		if info, err := d.Info(); match && err == nil {
			found = append(found, describe(path, info))
		}
		return nil
	})
	if err != nil {
		sendError(w, 500, runtimeError, "error searching files. %v", err)
		return
	}
	sendJSON(w, 200, found)
}

// queryPath is the one path of a GET, expanded; when it cannot be had the answer is already sent.
func queryPath(w http.ResponseWriter, r *http.Request) (string, bool) {
	asked := r.URL.Query().Get("path")
	if asked == "" {
		sendError(w, 400, missingQuery, "missing query parameter 'path'")
		return "", false
	}
	return resolved(w, asked)
}

func resolved(w http.ResponseWriter, asked string) (string, bool) {
	path, err := expandPath(asked)
	if err != nil {
		sendError(w, 500, runtimeError, "error resolving file path: %s. %v", asked, err)
		return "", false
	}
	return path, true
}

func moveFiles(w http.ResponseWriter, r *http.Request) {
	var items []model.RenameItem
	if !decode(w, r, &items) {
		return
	}
	for _, item := range items {
		src, ok := resolved(w, item.Src)
		if !ok {
			return
		}
		dest, ok := resolved(w, item.Dest)
		if !ok {
			return
		}
		if _, err := os.Stat(src); err != nil {
			sendFileError(w, wrap("source path not found: "+src, err))
			return
		}
		if _, err := os.Stat(dest); err == nil {
			sendError(w, 500, runtimeError, "error accessing file: destination path already exists: %s", dest)
			return
		}
		err := os.MkdirAll(filepath.Dir(dest), 0o755)
		if err == nil {
			err = os.Rename(src, dest)
		}
		if err != nil {
			sendFileError(w, err)
			return
		}
	}
}

func wrap(text string, err error) error {
	if os.IsNotExist(err) {
		return &notFound{text + ": " + err.Error()}
	}
	return fmt.Errorf("%s: %w", text, err)
}

// notFound keeps the words of a wrapped error and is still os.ErrNotExist.
type notFound struct{ text string }

func (e *notFound) Error() string        { return e.text }
func (e *notFound) Is(target error) bool { return target == fs.ErrNotExist }

func replaceInFiles(w http.ResponseWriter, r *http.Request) {
	var items map[string]model.ReplaceItem
	if !decode(w, r, &items) {
		return
	}
	counts := map[string]model.ReplaceResult{}
	for asked, item := range items {
		if item.Old == "" {
			sendError(w, 400, badRequest, "old content must not be empty")
			return
		}
		path, ok := resolved(w, asked)
		if !ok {
			return
		}
		info, err := os.Stat(path)
		if err != nil {
			sendFileError(w, err)
			return
		}
		text, err := os.ReadFile(path)
		if err == nil {
			counts[asked] = model.ReplaceResult{ReplacedCount: bytes.Count(text, []byte(item.Old))}
			text = bytes.ReplaceAll(text, []byte(item.Old), []byte(item.New))
			err = os.WriteFile(path, text, info.Mode().Perm())
		}
		if err != nil {
			sendFileError(w, err)
			return
		}
	}
	if r.URL.Query().Get("verbose") == "true" {
		sendJSON(w, 200, counts)
	}
}

// changePermissions answers 500 also for a file that is not there.
func changePermissions(w http.ResponseWriter, r *http.Request) {
	var items map[string]model.Permission
	if !decode(w, r, &items) {
		return
	}
	for asked, item := range items {
		path, ok := resolved(w, asked)
		if !ok {
			return
		}
		if err := setPermission(path, item); err != nil {
			sendError(w, 500, runtimeError, "error changing permissions for %s. %v", asked, err)
			return
		}
	}
}

// removeFiles takes a missing file for removed, and refuses a directory.
func removeFiles(w http.ResponseWriter, r *http.Request) {
	for _, asked := range r.URL.Query()["path"] {
		path, ok := resolved(w, asked)
		if !ok {
			return
		}
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			sendError(w, 500, runtimeError, "error removing file %s. path is a directory: %s", asked, path)
			return
		}
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			sendError(w, 500, runtimeError, "error removing file %s. %v", asked, err)
			return
		}
	}
}
