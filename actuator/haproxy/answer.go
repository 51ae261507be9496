package haproxy

import (
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

// process identifies one run of HAProxy by host, process number and start time in seconds. A reload
// starts a new run, although its socket stays the same.
type process string

// parseInfo parses the answer to "show info": lines of "Key: value".
func parseInfo(text string) (process, error) {
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
	return process(of["node"] + "/" + of["Pid"] + "/" + of["Start_time_sec"]), nil
}

// server is one row of "show stat".
type server struct {
	name, id string
	limit    trimtab.Amount
}

// parseServers parses the answer to "show stat BACKEND 4 -1": a line of column names after "# ",
// and a row for each server. The column slim is maxconn; it is empty if there is no limit.
func parseServers(text, backend string) (all []server, err error) {
	header, ok := strings.CutPrefix(text, "# ")
	if !ok {
		if text = strings.TrimSpace(text); text == "No such proxy." {
			return nil, fmt.Errorf("HAProxy has no backend %s: `show backend` lists them: %w", backend, os.ErrNotExist)
		}
		return nil, trimtab.Invalidf("%.60q is no answer of HAProxy to show stat", text)
	}
	r := csv.NewReader(strings.NewReader(header))
	r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = -1, true, true
	names, err := r.Read()
	if err != nil {
		return nil, trimtab.Invalidf("read the statistics of HAProxy: %w", err)
	}
	at := map[string]int{}
	for _, name := range []string{"pxname", "svname", "sid", "slim"} {
		if at[name] = slices.Index(names, name); at[name] < 0 {
			return nil, trimtab.Invalidf("the statistics of HAProxy have no column %s", name)
		}
	}
	last := max(at["pxname"], at["svname"], at["sid"], at["slim"])
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil || len(row) <= last {
			return nil, trimtab.Invalidf("the statistics of HAProxy end in a row of %d columns, want more than %d: %w", len(row), last, errors.Join(err, io.ErrUnexpectedEOF))
		}
		if row[at["pxname"]] != backend || !plain(row[at["svname"]]) {
			continue
		}
		limit, err := parseLimit(row[at["slim"]])
		if err != nil {
			return nil, err
		}
		all = append(all, server{strings.Clone(row[at["svname"]]), strings.Clone(row[at["sid"]]), limit})
	}
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

// answer is the result of the commands sent in one connection.
type answer struct {
	of      process
	servers []server // in the backend that was asked for
	// scope is the argument of "show stat" with which the servers were listed; rest is the answer
	// to the further commands.
	scope, rest string
}

// limit returns the maxconn of a server; ok is false if the server was not listed.
func (a *answer) limit(name string) (limit trimtab.Amount, ok bool) {
	i := slices.IndexFunc(a.servers, func(s server) bool { return s.name == name })
	if i < 0 {
		return trimtab.Amount{}, false
	}
	return a.servers[i].limit, true
}

// everywhere is the argument of "show stat" that lists the servers of all backends.
const everywhere = "-1"

// survey asks for the process and the servers of a backend, and then sends the commands in more.
// HAProxy looks a name up among frontends first, which have no servers; if a frontend has the name
// of the backend, survey lists the servers of all backends.
func survey(ctx context.Context, socket, backend string, more ...string) (found answer, err error) {
	for _, scope := range []string{backend, everywhere} {
		if found, err = listed(ctx, socket, backend, scope, more...); err != nil || len(found.servers) > 0 {
			break
		}
	}
	return found, err
}

// listed asks for the process and the servers in scope, and then sends the commands in more.
func listed(ctx context.Context, socket, backend, scope string, more ...string) (answer, error) {
	text, err := ask(ctx, socket, append([]string{"show info", "show stat " + scope + " 4 -1"}, more...)...)
	if err != nil {
		return answer{}, err
	}
	found := answer{scope: scope}
	info, text, _ := strings.Cut(text, "\n\n") // an empty line ends each answer
	stat, rest, _ := strings.Cut(text, "\n\n")
	if found.of, err = parseInfo(info); err == nil {
		found.servers, err = parseServers(stat, backend)
	}
	found.rest = rest
	return found, err
}

// parseSet parses the answer to "set maxconn": an empty line means success.
func parseSet(text string) error {
	switch text = strings.TrimSpace(text); text {
	case "":
		return nil
	case "Permission denied":
		return errLevel
	case "No such server.", "No such backend.":
		return fmt.Errorf("HAProxy says %q: %w", text, os.ErrNotExist)
	}
	return fmt.Errorf("HAProxy says %.120q: %w", text, trimtab.ErrRefused)
}

// errLevel says that the socket has only the level at which it shows state.
var errLevel = fmt.Errorf("the socket has not the level admin: write `stats socket PATH level admin` in haproxy.cfg, and reload it: %w", os.ErrPermission)

// plain reports whether HAProxy allows a name for a backend or server: letters, digits, '-', '_',
// '.' and ':'. This package sends no other name to it.
func plain(name string) bool {
	return name != "" && len(name) <= 253 && strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:", r))
	}) < 0
}
