package main

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"stock_execd/model"
)

// expandPath makes a path absolute after replacing a leading ~ and environment
// variables. An undefined variable is an error, so a file whose name has a
// dollar sign cannot be reached by the file calls.
func expandPath(path string) (string, error) {
	if path == "~" || strings.HasPrefix(path, "~/") {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		path = home + path[1:]
	}
	var undefined []string
	path = os.Expand(path, func(name string) string {
		value, ok := os.LookupEnv(name)
		if !ok {
			undefined = append(undefined, name)
		}
		return value
	})
	if undefined != nil {
		return "", errors.New("path references undefined environment variables: " + strings.Join(undefined, ", "))
	}
	return filepath.Abs(path)
}

// describe is one entry of info, list and search; links are not followed.
func describe(path string, info os.FileInfo) model.FileInfo {
	st := info.Sys().(*syscall.Stat_t)
	entry := model.FileInfo{
		Path: path, Size: info.Size(), ModifiedAt: info.ModTime().UTC(),
		CreatedAt: time.Unix(st.Ctim.Unix()).UTC(),
		Owner:     strconv.Itoa(int(st.Uid)), Group: strconv.Itoa(int(st.Gid)),
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		entry.Type = "symlink"
	case info.IsDir():
		entry.Type = "directory"
	case info.Mode().IsRegular():
		entry.Type = "file"
	default:
		entry.Type = "other"
	}
	if u, err := user.LookupId(entry.Owner); err == nil {
		entry.Owner = u.Username
	}
	if g, err := user.LookupGroupId(entry.Group); err == nil {
		entry.Group = g.Name
	}
	entry.Mode, _ = strconv.Atoi(strconv.FormatUint(uint64(info.Mode().Perm()), 8))
	return entry
}

// parseMode turns 644 into 0644.
func parseMode(mode int) (os.FileMode, error) {
	bits, err := strconv.ParseUint(strconv.Itoa(mode), 8, 32)
	return os.FileMode(bits), err
}

func setPermission(path string, p model.Permission) error {
	uid, gid := -1, -1
	if p.Owner != "" {
		u, err := user.Lookup(p.Owner)
		if err != nil {
			return fmt.Errorf("failed to lookup user %s: %w", p.Owner, err)
		}
		uid, _ = strconv.Atoi(u.Uid)
	}
	if p.Group != "" {
		g, err := user.LookupGroup(p.Group)
		if err != nil {
			return fmt.Errorf("failed to lookup group %s: %w", p.Group, err)
		}
		gid, _ = strconv.Atoi(g.Gid)
	}
	if uid != -1 || gid != -1 {
		if err := os.Chown(path, uid, gid); err != nil {
			return err
		}
	}
	if p.Mode == 0 {
		return nil
	}
	mode, err := parseMode(p.Mode)
	if err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
