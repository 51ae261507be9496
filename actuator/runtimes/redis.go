package runtimes

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// redis is a Redis server. Its limit is maxmemory, beyond which it evicts by the operator's policy.
type redis struct {
	at      *actuator.Runtime
	process Process
	members []int
}

// findRedis asks the server at the address which process it is.
func findRedis(ctx context.Context, at *actuator.Runtime, members []int) ([]Program, error) {
	if len(members) == 0 {
		return nil, nil
	}
	r := &redis{at: at, members: members}
	if _, err := r.ask(ctx); err != nil {
		return nil, err
	}
	return []Program{r}, nil
}

func (r *redis) String() string { return fmt.Sprintf("Redis %d", r.process.PID) }

func (r *redis) Process() Process { return r.process }

// ask sends commands in one connection and returns their answers. It checks first that the server is
// a process of the group, and the same as before.
func (r *redis) ask(ctx context.Context, commands ...[]string) (answers []string, err error) {
	c, p, err := r.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask Redis at %s: %w", r.at.Address, err)
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	in := bufio.NewReader(io.LimitReader(c, maxAnswer))
	answers, err = r.talk(c, in, p, commands)
	if err != nil {
		return nil, fmt.Errorf("ask Redis at %s: %w", r.at.Address, err)
	}
	return answers, nil
}

// connect opens a connection. The process is the zero Process if the server must say which it is.
func (r *redis) connect(ctx context.Context) (net.Conn, Process, error) {
	if filepath.IsAbs(r.at.Address) {
		return listening(ctx, r.members, r.at.Address)
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", r.at.Address)
	return c, Process{}, err
}

func (r *redis) talk(c net.Conn, in *bufio.Reader, p Process, commands [][]string) (answers []string, err error) {
	if r.at.PasswordFile != "" {
		password, err := secret(r.at.PasswordFile)
		if err != nil {
			return nil, err
		}
		auth := []string{"AUTH", password}
		if r.at.User != "" {
			auth = []string{"AUTH", r.at.User, password}
		}
		if _, err := command(c, in, auth); err != nil {
			return nil, fmt.Errorf("log in: %w", err)
		}
	}
	info, err := command(c, in, []string{"INFO", "server"})
	if err != nil {
		return nil, err
	}
	if p == (Process{}) {
		pid, err := strconv.Atoi(field(info, "process_id"))
		if err != nil {
			return nil, trimtab.Invalidf("its process_id is %.40q", field(info, "process_id"))
		}
		if p, err = inside(r.members, pid); err != nil {
			return nil, err
		}
	}
	if r.process == (Process{}) {
		r.process = p
	}
	if p != r.process {
		return nil, fmt.Errorf("process %d answers now: %w", p.PID, os.ErrNotExist)
	}
	for _, words := range commands {
		a, err := command(c, in, words)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(words[:min(2, len(words))], " "), err)
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// secret reads a file that holds a password and nothing else.
func secret(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// command sends one command in Redis's protocol (RESP 2) and returns its answer. The elements of an
// array are joined by line ends.
func command(w io.Writer, in *bufio.Reader, words []string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return "", err
	}
	return readAnswer(in)
}

// readAnswer reads one answer: "+text", ":number", "-error", "$length" with as many bytes, or "*count"
// with as many of the former.
func readAnswer(in *bufio.Reader) (string, error) {
	kind, rest, err := readHead(in)
	if err != nil || kind != '*' {
		return readSimple(in, kind, rest, err)
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < 0 || n > 1000 {
		return "", trimtab.Invalidf("an answer of %.20q elements", rest)
	}
	all := make([]string, n)
	for i := range all {
		kind, rest, err := readHead(in)
		if all[i], err = readSimple(in, kind, rest, err); err != nil {
			return "", err
		}
	}
	return strings.Join(all, "\n"), nil
}

func readHead(in *bufio.Reader) (kind byte, rest string, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, "", err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return 0, "", trimtab.Invalidf("an empty answer")
	}
	return line[0], line[1:], nil
}

func readSimple(in *bufio.Reader, kind byte, rest string, err error) (string, error) {
	switch {
	case err != nil:
		return "", err
	case kind == '+' || kind == ':':
		return rest, nil
	case kind == '-':
		return "", fmt.Errorf("it answers %.120q: %w", rest, trimtab.ErrRefused)
	case kind != '$':
		return "", trimtab.Invalidf("it answers %.60q", string(kind)+rest)
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < 0 || n > maxAnswer {
		return "", trimtab.Invalidf("an answer of %.20q bytes", rest)
	}
	b := make([]byte, n+len("\r\n"))
	if _, err := io.ReadFull(in, b); err != nil {
		return "", err
	}
	return string(b[:n]), nil
}

// field returns the value of a line "name:value" of INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Read asks for maxmemory and for what is in use. Everything but what clients, replicas and tables
// take can be evicted.
func (r *redis) Read(ctx context.Context) (State, error) {
	all, err := r.ask(ctx, []string{"CONFIG", "GET", "maxmemory"}, []string{"INFO", "memory"})
	if err != nil {
		return State{}, err
	}
	return parseRedis(all[0], all[1])
}

func parseRedis(config, info string) (s State, err error) {
	_, limit, _ := strings.Cut(config, "\n")
	set, err := strconv.ParseUint(limit, 10, 63)
	if err != nil {
		return s, trimtab.Invalidf("maxmemory of Redis is %.40q", config)
	}
	var v [2]float64
	for i, name := range []string{"used_memory", "used_memory_startup"} {
		n, err := strconv.ParseUint(field(info, name), 10, 50)
		if err != nil {
			return s, trimtab.Invalidf("%s of Redis is %.40q", name, field(info, name))
		}
		v[i] = float64(n)
	}
	return State{Setting: strconv.FormatUint(set, 10), Held: v[0], Least: min(v[0], v[1])}, nil
}

// Set sets maxmemory, if the policy evicts: with noeviction Redis would refuse writes instead.
func (r *redis) Set(ctx context.Context, to Room, was State) error {
	before, err := strconv.ParseUint(was.Setting, 10, 63)
	if err != nil {
		return trimtab.Invalidf("maxmemory of %s was %.40q", r, was.Setting)
	}
	if before == 0 { // no limit
		before = math.MaxInt64
	}
	all, err := r.ask(ctx, []string{"CONFIG", "GET", "maxmemory-policy"})
	if err != nil {
		return err
	}
	if strings.HasSuffix(all[0], "\nnoeviction") {
		return fmt.Errorf("%s has maxmemory-policy noeviction, with which it would refuse writes and free nothing: choose a policy that evicts: %w", r, trimtab.ErrUnsupported)
	}
	if to.Bytes < 1 {
		return needs(r, 1, to)
	}
	return r.set(ctx, min(before, uint64(to.Bytes)))
}

func (r *redis) set(ctx context.Context, limit uint64) error {
	want := strconv.FormatUint(limit, 10)
	all, err := r.ask(ctx, []string{"CONFIG", "SET", "maxmemory", want}, []string{"CONFIG", "GET", "maxmemory"})
	if err == nil && all[1] != "maxmemory\n"+want {
		err = trimtab.Invalidf("set maxmemory of %s to %s, read back %.40q", r, want, all[1])
	}
	return err
}

// Free gives what the allocator keeps back to the kernel. Redis evicts by itself.
func (r *redis) Free(ctx context.Context, _ Room) error {
	_, err := r.ask(ctx, []string{"MEMORY", "PURGE"})
	return err
}

// Restore sets maxmemory to what it was.
func (r *redis) Restore(ctx context.Context, setting string) error {
	limit, err := strconv.ParseUint(setting, 10, 63)
	if err != nil {
		return trimtab.Invalidf("maxmemory of %s was %.40q", r, setting)
	}
	return r.set(ctx, limit)
}
