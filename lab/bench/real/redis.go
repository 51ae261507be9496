package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// script keeps Redis busy for as many turns as it is told.
const script = "local x = 1 for i = 1, tonumber(ARGV[1]) do x = (x * 1103515245 + 12345) % 2147483648 end return x"

// redis runs a Lua script for each request, one at a time as Redis does. Work
// is the number of turns in hundreds.
type redis struct {
	process *rig.Process
	pool    *rig.Connections
}

func (r *redis) start(ctx context.Context, in *rig.Group, dir string) error {
	address, err := rig.FreeAddress()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	binary, err := rig.Lookup("redis-server", "redis-server")
	if err != nil {
		return err
	}
	r.process, err = rig.Start(rig.Program{
		Args: []string{binary, "--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no", "--tcp-backlog", "511"},
		Dir:  dir, Log: filepath.Join(dir, "redis.log"), Stop: syscall.SIGTERM,
	}, in)
	if err != nil {
		return err
	}
	r.pool = rig.NewConnections(inFlight, func(ctx context.Context) (net.Conn, error) { return rig.Dial(ctx, address) })
	return r.process.Await(ctx, func(ctx context.Context) error { return r.do(ctx, 1) })
}

func (r *redis) do(ctx context.Context, work int) error {
	return r.pool.Use(ctx, func(c *rig.Connection) error {
		args := []string{"EVAL", script, "0", strconv.Itoa(100 * work)}
		var b strings.Builder
		fmt.Fprintf(&b, "*%d\r\n", len(args))
		for _, a := range args {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
		}
		if _, err := c.Write([]byte(b.String())); err != nil {
			return fmt.Errorf("ask redis: %w", err)
		}
		return integer(c.In)
	})
}

// integer reads an answer of the Redis protocol, of which only an integer is
// right: ":123\r\n".
func integer(in *bufio.Reader) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("read from redis: %w", err)
	}
	if !strings.HasPrefix(line, ":") {
		return fmt.Errorf("read %.80q from redis: %w", line, rig.ErrAnswer)
	}
	return nil
}

func (r *redis) close() {
	if r.pool != nil {
		r.pool.Close()
	}
	if r.process != nil {
		r.process.Close()
	}
}
