package main

import (
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"

	"stock_execd/model"
)

const inMemory = 32 << 20 // above this the request is spooled to the temporary directory

// uploadFiles takes pairs of parts, metadata and file, both with a file name.
// The whole request is read before anything is written; a file that exists is
// truncated and rewritten in place.
func uploadFiles(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseMultipartForm(inMemory); err != nil || r.MultipartForm == nil {
		sendError(w, 400, badFile, "multipart form is empty")
		return
	}
	defer r.MultipartForm.RemoveAll()
	metas, files := r.MultipartForm.File["metadata"], r.MultipartForm.File["file"]
	switch {
	case len(metas) == 0:
		sendError(w, 400, badMetadata, "metadata file is missing")
		return
	case len(files) == 0:
		sendError(w, 400, badContent, "file is missing")
		return
	case len(metas) != len(files):
		sendError(w, 400, badFile, "metadata and file count mismatch: %d vs %d", len(metas), len(files))
		return
	}
	for i := range metas {
		if !storeOne(w, metas[i], files[i]) {
			return
		}
	}
}

func storeOne(w http.ResponseWriter, metaPart, filePart *multipart.FileHeader) bool {
	var meta model.FileMetadata
	part, err := metaPart.Open()
	if err == nil {
		err = json.NewDecoder(part).Decode(&meta)
		part.Close()
	}
	if err != nil {
		sendError(w, 400, badMetadata, "invalid metadata format. %v", err)
		return false
	}
	if meta.Path == "" {
		sendError(w, 400, badMetadata, "metadata path is empty")
		return false
	}
	target, err := expandPath(meta.Path)
	if err != nil {
		sendError(w, 500, runtimeError, "error resolving target path %s. %v", meta.Path, err)
		return false
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		sendError(w, 500, runtimeError, "error creating target directory %s. %v", filepath.Dir(target), err)
		return false
	}
	out, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		sendError(w, 500, runtimeError, "error opening destination file %s. %v", target, err)
		return false
	}
	if err := writeOut(out, filePart); err != nil {
		sendError(w, 500, runtimeError, "error writing destination file %s. %v", target, err)
		return false
	}
	if err := setPermission(target, model.Permission{Owner: meta.Owner, Group: meta.Group, Mode: meta.Mode}); err != nil {
		sendError(w, 500, runtimeError, "error chmoding file %s. %v", target, err)
		return false
	}
	return true
}

func writeOut(out *os.File, from *multipart.FileHeader) error {
	defer out.Close()
	in, err := from.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Sync()
}
