package haproxy

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
)

// Process identifies one run of HAProxy by host, process number and start time in seconds. A reload
// starts a new run, although its socket stays the same.
type Process string

// ParseInfo parses the answer to "show info": lines of "Key: value".
func ParseInfo(text string) (Process, error) {
	of := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Pid", "Start_time_sec":
			if n, err := strconv.ParseUint(value, 10, 63); err != nil || n == 0 {
				return "", trimtab.Invalidf("HAProxy says %s: %.40q", key, value)
			}
			of[key] = value
		case "Name", "node":
			of[key] = value
		}
	}
	switch {
	case of["Name"] != "HAProxy" && of["Name"] != "hapee-lb":
		return "", trimtab.Invalidf("%.60q is no answer of HAProxy to show info: is this its stats socket?", text)
	case of["Pid"] == "" || of["Start_time_sec"] == "":
		return "", fmt.Errorf("HAProxy tells neither Pid nor Start_time_sec: version 2.5 or later does: %w", trimtab.ErrUnsupported)
	case len(of["node"]) > 253:
		return "", trimtab.Invalidf("HAProxy has a node of %d bytes", len(of["node"]))
	}
	return Process(of["node"] + "/" + of["Pid"] + "/" + of["Start_time_sec"]), nil
}

// Row is one row of "show stat": a server, or a backend as a whole.
type Row struct {
	Name, ID string
	// Limit is the maxconn of a server.
	Limit trimtab.Amount
	// Serving is the number of sessions of a server, or of those in a backend, which also has those
	// that wait; Queued is the number of those that wait for this server, or for any of the backend.
	Serving, Queued uint64
	// Sessions counts those that came here, Answered the HTTP responses, NoConnection the sessions for
	// which no connection came about (of a backend, this includes those that ended in the queue),
	// NoResponse those that a server did not answer, Left those that the client gave up. They count
	// from the start of the process.
	Sessions, Answered, NoConnection, NoResponse, Left uint64
}

// whole is the name of the row of a backend.
const whole = "BACKEND"

// counter returns the field to which a column adds; nil: none. A column is empty where HAProxy does not
// count, such as responses in mode tcp.
func (r *Row) counter(column string) *uint64 {
	switch column {
	case "scur":
		return &r.Serving
	case "qcur":
		return &r.Queued
	case "stot":
		return &r.Sessions
	case "econ":
		return &r.NoConnection
	case "eresp":
		return &r.NoResponse
	case "cli_abrt":
		return &r.Left
	case "hrsp_1xx", "hrsp_2xx", "hrsp_3xx", "hrsp_4xx", "hrsp_5xx", "hrsp_other":
		return &r.Answered
	}
	return nil
}

// ParseStat parses the answer to "show stat BACKEND 6 -1": a line of column names after "# ", and a
// row for the backend and for each of its servers. The column slim is maxconn; it is empty if there
// is no limit.
func ParseStat(text, backend string) (own *Row, servers []Row, err error) {
	header, ok := strings.CutPrefix(text, "# ")
	if !ok {
		if text = strings.TrimSpace(text); text == "No such proxy." {
			return nil, nil, fmt.Errorf("HAProxy has no backend %s: `show backend` lists them: %w", backend, os.ErrNotExist)
		}
		return nil, nil, trimtab.Invalidf("%.60q is no answer of HAProxy to show stat", text)
	}
	r := csv.NewReader(strings.NewReader(header))
	r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = -1, true, true
	names, err := r.Read()
	names = slices.Clone(names)
	if err != nil {
		return nil, nil, trimtab.Invalidf("read the statistics of HAProxy: %w", err)
	}
	at, last := map[string]int{}, 0
	for i, name := range names {
		at[name] = i
	}
	for _, name := range []string{"pxname", "svname", "sid", "slim"} {
		i, ok := at[name]
		if !ok {
			return nil, nil, trimtab.Invalidf("the statistics of HAProxy have no column %s", name)
		}
		last = max(last, i)
	}
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return own, servers, nil
		}
		if err != nil || len(row) <= last {
			return nil, nil, trimtab.Invalidf("the statistics of HAProxy end in a row of %d columns, want more than %d: %w", len(row), last, errors.Join(err, io.ErrUnexpectedEOF))
		}
		if row[at["pxname"]] != backend || !Plain(row[at["svname"]]) || row[at["svname"]] == "FRONTEND" {
			continue
		}
		parsed, err := parseRow(row, names, at)
		switch {
		case err != nil:
			return nil, nil, err
		case parsed.Name == whole:
			own = &parsed
		default:
			servers = append(servers, parsed)
		}
	}
}

// parseRow parses the row of a server or backend.
func parseRow(row, names []string, at map[string]int) (out Row, err error) {
	out = Row{Name: strings.Clone(row[at["svname"]]), ID: strings.Clone(row[at["sid"]])}
	if out.Limit, err = parseLimit(row[at["slim"]]); err != nil {
		return Row{}, err
	}
	for i, text := range row[:min(len(row), len(names))] {
		to := out.counter(names[i])
		if to == nil || text == "" {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 53)
		if err != nil {
			return Row{}, trimtab.Invalidf("HAProxy counts %.40q in the column %s", text, names[i])
		}
		*to += n
	}
	return out, nil
}

// parseLimit parses a maxconn as "show stat" prints it.
func parseLimit(text string) (trimtab.Amount, error) {
	if text == "" || text == "0" {
		return trimtab.Unlimited(), nil
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return trimtab.Amount{}, trimtab.Invalidf("HAProxy has a maxconn of %.40q", text)
	}
	return trimtab.Units(float64(n)), nil
}

// Backend is what HAProxy says of one backend, in one connection.
type Backend struct {
	Of Process
	// Own is the row of the backend; nil: HAProxy listed none. Servers are those of its servers.
	Own     *Row
	Servers []Row
	// Scope is the argument of "show stat" with which they were listed; Rest is the answer to the
	// further commands.
	Scope, Rest string
}

// Limit returns the maxconn of a server; ok is false if the server was not listed.
func (b *Backend) Limit(name string) (limit trimtab.Amount, ok bool) {
	i := slices.IndexFunc(b.Servers, func(s Row) bool { return s.Name == name })
	if i < 0 {
		return trimtab.Amount{}, false
	}
	return b.Servers[i].Limit, true
}

// everywhere is the argument of "show stat" that lists the servers of all backends.
const everywhere = "-1"

// Look asks for the process, a backend and its servers, and then sends the commands in more. HAProxy
// looks a name up among frontends first, which have no servers; if a frontend has the name of the
// backend, Look lists all backends.
func Look(ctx context.Context, socket, backend string, more ...string) (found Backend, err error) {
	for _, scope := range []string{backend, everywhere} {
		if found, err = LookIn(ctx, socket, backend, scope, more...); err != nil || len(found.Servers) > 0 {
			break
		}
	}
	return found, err
}

// LookIn is Look in one scope.
func LookIn(ctx context.Context, socket, backend, scope string, more ...string) (Backend, error) {
	text, err := Ask(ctx, socket, append([]string{"show info", "show stat " + scope + " 6 -1"}, more...)...)
	if err != nil {
		return Backend{}, err
	}
	found := Backend{Scope: scope}
	info, text := Answer(text)
	stat, rest := Answer(text)
	if found.Of, err = ParseInfo(info); err == nil {
		found.Own, found.Servers, err = ParseStat(stat, backend)
	}
	found.Rest = rest
	return found, err
}

// Answer returns the answer to the first command in a text, which an empty line ends, and the rest.
func Answer(text string) (first, rest string) {
	first, rest, _ = strings.Cut(text, "\n\n")
	return first, rest
}

// Set parses the answer to commands that set something: empty lines mean success.
func Set(text string) error {
	switch text = strings.TrimSpace(text); text {
	case "":
		return nil
	case "Permission denied":
		return ErrLevel
	case "No such server.", "No such backend.", "entry not found.":
		return fmt.Errorf("HAProxy says %q: %w", text, os.ErrNotExist)
	}
	return fmt.Errorf("HAProxy says %.120q: %w", text, trimtab.ErrRefused)
}

// ErrLevel says that the socket has only the level at which it shows state.
var ErrLevel = fmt.Errorf("the socket has not the level admin: write `stats socket PATH level admin` in haproxy.cfg, and reload it: %w", os.ErrPermission)

// Plain reports whether HAProxy allows a name for a backend or server: letters, digits, '-', '_',
// '.' and ':'. Nothing else is sent to it as a name.
func Plain(name string) bool {
	return name != "" && len(name) <= 253 && strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:", r))
	}) < 0
}

// Class is what a stick table counts of one class of requests, from the start of the process.
type Class struct {
	// Requests came, Admitted were admitted, Answered were answered by a server. Underway is how many
	// are not yet over.
	Requests, Admitted, Answered, Underway uint64
}

// NotServed returns how many requests were over and not answered by a server.
func (c Class) NotServed() uint64 {
	return c.Requests - min(c.Requests, c.Answered+c.Underway)
}

// maxKeys bounds the entries of a table or map that are read.
const maxKeys = 256

// ParseTable parses the answer to "show table NAME": a line of what the table is, and one line for
// each class: "0x…: key=critical use=2 exp=0 gpc0=5 gpc1=6 gpc1_rate(1000)=1 http_req_cnt=9".
func ParseTable(text string) (map[string]Class, error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "# table: ") {
		return nil, fmt.Errorf("HAProxy says %.120q of the table of classes: `trimtab init haproxy` prints the lines that it needs: %w", text, cmp.Or(Set(text), trimtab.ErrRefused))
	}
	all := map[string]Class{}
	for line := range strings.Lines(text) {
		var c Class
		key, counted := "", 0
		for field := range strings.FieldsSeq(line) {
			name, value, _ := strings.Cut(field, "=")
			to := map[string]*uint64{"use": &c.Underway, "gpc0": &c.Answered, "gpc1": &c.Admitted, "http_req_cnt": &c.Requests}[name]
			switch {
			case name == "key":
				key = strings.Clone(value)
			case to != nil:
				n, err := strconv.ParseUint(value, 10, 53)
				if err != nil {
					return nil, trimtab.Invalidf("HAProxy counts %.60q in a table", field)
				}
				*to, counted = n, counted+1
			}
		}
		switch {
		case key == "":
		case counted < 4:
			return nil, trimtab.Invalidf("the table of HAProxy lacks a counter: %.120q", line)
		case len(all) == maxKeys:
			return nil, fmt.Errorf("HAProxy counts more than %d classes: %w", maxKeys, trimtab.ErrRefused)
		default:
			all[key] = c
		}
	}
	return all, nil
}

// ParseMap parses the answer to "show map FILE": lines of "0x… KEY VALUE". Values that are no whole
// numbers are left out, as HAProxy does.
func ParseMap(text string) (map[string]uint64, error) {
	text = strings.TrimSpace(text)
	all := map[string]uint64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if !strings.HasPrefix(f[0], "0x") {
			return nil, fmt.Errorf("HAProxy says %.120q of the map: `trimtab init haproxy` prints the lines that it needs: %w", text, cmp.Or(Set(text), trimtab.ErrRefused))
		}
		if len(all) == maxKeys {
			return nil, fmt.Errorf("the map of HAProxy has more than %d entries: %w", maxKeys, trimtab.ErrRefused)
		}
		if len(f) != 3 {
			continue
		}
		if n, err := strconv.ParseUint(f[2], 10, 53); err == nil {
			all[strings.Clone(f[1])] = n
		}
	}
	return all, nil
}
