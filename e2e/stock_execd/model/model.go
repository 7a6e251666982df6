// Package model holds the request and answer bodies of the execd API. Type
// names matter: they appear in the decoder's and validator's error texts.
package model

import "time"

type RunCommandRequest struct {
	Command    string            `json:"command"`
	Cwd        string            `json:"cwd"`
	Background bool              `json:"background"`
	TimeoutMs  int64             `json:"timeout"`
	Uid        *uint32           `json:"uid"`
	Gid        *uint32           `json:"gid"`
	Envs       map[string]string `json:"envs"`
}

type Permission struct {
	Owner string `json:"owner"`
	Group string `json:"group"`
	Mode  int    `json:"mode"` // a decimal number that spells the octal digits: 644, never 420
}

type FileMetadata struct {
	Path  string `json:"path"`
	Owner string `json:"owner"`
	Group string `json:"group"`
	Mode  int    `json:"mode"`
}

type RenameItem struct {
	Src  string `json:"src"`
	Dest string `json:"dest"`
}

type ReplaceItem struct {
	Old string `json:"old"`
	New string `json:"new"`
}

type ReplaceResult struct {
	ReplacedCount int `json:"replacedCount"`
}

type FileInfo struct {
	Path       string    `json:"path"`
	Type       string    `json:"type"`
	Size       int64     `json:"size"`
	ModifiedAt time.Time `json:"modified_at"`
	CreatedAt  time.Time `json:"created_at"`
	Owner      string    `json:"owner"`
	Group      string    `json:"group"`
	Mode       int       `json:"mode"`
}

type CommandStatus struct {
	Id         string     `json:"id"`
	Content    string     `json:"content"`
	Running    bool       `json:"running"`
	ExitCode   *int       `json:"exit_code,omitempty"`
	Error      string     `json:"error,omitempty"`
	StartedAt  time.Time  `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

type ExecError struct {
	Ename     string   `json:"ename"`
	Evalue    string   `json:"evalue"`
	Traceback []string `json:"traceback"`
}

// Event is one line of a command's stream; empty and zero fields are left out.
type Event struct {
	Type          string     `json:"type"`
	Text          string     `json:"text,omitempty"`
	ExecutionTime int64      `json:"execution_time,omitempty"`
	Timestamp     int64      `json:"timestamp"`
	Error         *ExecError `json:"error,omitempty"`
}

type Metrics struct {
	CpuCount    float64 `json:"cpu_count"`
	CpuUsedPct  float64 `json:"cpu_used_pct"`
	MemTotalMib float64 `json:"mem_total_mib"`
	MemUsedMib  float64 `json:"mem_used_mib"`
	Timestamp   int64   `json:"timestamp"`
}

type PtyRequest struct {
	Cwd     string `json:"cwd"`
	Command string `json:"command"`
}

type PtyStatus struct {
	SessionId    string `json:"session_id"`
	Running      bool   `json:"running"`
	OutputOffset uint64 `json:"output_offset"`
}

// PtyFrame is a text frame of the daemon, PtyControl one of a client.
type PtyFrame struct {
	Type      string `json:"type"`
	SessionId string `json:"session_id,omitempty"`
	Mode      string `json:"mode,omitempty"`
	ExitCode  *int   `json:"exit_code,omitempty"`
	Error     string `json:"error,omitempty"`
	Code      string `json:"code,omitempty"`
}

type PtyControl struct {
	Type   string `json:"type"`
	Cols   uint16 `json:"cols"`
	Rows   uint16 `json:"rows"`
	Signal string `json:"signal"`
	Data   string `json:"data"`
}

type SessionRequest struct {
	Cwd string `json:"cwd"`
}

type RunInSessionRequest struct {
	Command   string `json:"command"`
	Cwd       string `json:"cwd"`
	TimeoutMs int64  `json:"timeout"`
}

type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}
