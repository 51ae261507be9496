package rig

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// script keeps Redis busy for as many turns as it is told.
const script = "local x = 1 for i = 1, tonumber(ARGV[1]) do x = (x * 1103515245 + 12345) % 2147483648 end return x"

// Redis is a Redis that runs a Lua script for each request, one at a time.
type Redis struct {
	process *Process
	pool    *Connections
}

// StartRedis starts it in a group with its files in dir, to be asked over at most so many
// connections, and returns when it answers. More arguments follow those of the benches.
func StartRedis(ctx context.Context, in *Group, dir string, most int, more ...string) (*Redis, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	binary, err := Lookup("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	process, err := Start(Program{
		Args: append([]string{binary, "--bind", host, "--port", port, "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no", "--tcp-backlog", "511"}, more...),
		Dir:  dir, Log: filepath.Join(dir, "redis.log"), Stop: syscall.SIGTERM,
	}, in)
	if err != nil {
		return nil, err
	}
	r := &Redis{process, NewConnections(most, func(ctx context.Context) (net.Conn, error) { return Dial(ctx, address) })}
	if err := process.Await(ctx, func(ctx context.Context) error { return r.Turn(ctx, 1) }); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Turn runs the script for so many turns, and waits for its answer.
func (r *Redis) Turn(ctx context.Context, turns int) error {
	return r.pool.Use(ctx, func(c *Connection) error {
		if err := send(c, "EVAL", script, "0", strconv.Itoa(turns)); err != nil {
			return err
		}
		return integer(c.In)
	})
}

// Get reads the value of a key to its end, and says whether there is one.
func (r *Redis) Get(ctx context.Context, key string) (found bool, err error) {
	err = r.pool.Use(ctx, func(c *Connection) error {
		if err := send(c, "GET", key); err != nil {
			return err
		}
		line, err := c.In.ReadString('\n')
		if err != nil {
			return fmt.Errorf("read from redis: %w", err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, "$")))
		if err != nil || !strings.HasPrefix(line, "$") {
			return fmt.Errorf("read %.80q from redis: %w", line, ErrAnswer)
		}
		if found = n >= 0; !found {
			return nil
		}
		if _, err := c.In.Discard(n + len("\r\n")); err != nil {
			return fmt.Errorf("read from redis: %w", err)
		}
		return nil
	})
	return found, err
}

// Set stores the value of a key.
func (r *Redis) Set(ctx context.Context, key, value string) error {
	return r.pool.Use(ctx, func(c *Connection) error {
		if err := send(c, "SET", key, value); err != nil {
			return err
		}
		line, err := c.In.ReadString('\n')
		if err != nil {
			return fmt.Errorf("read from redis: %w", err)
		}
		if line != "+OK\r\n" {
			return fmt.Errorf("read %.80q from redis: %w", line, ErrAnswer)
		}
		return nil
	})
}

// send sends a command.
func send(c *Connection, command ...string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(command))
	for _, a := range command {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := c.Write([]byte(b.String())); err != nil {
		return fmt.Errorf("ask redis: %w", err)
	}
	return nil
}

// Done is closed when it has ended.
func (r *Redis) Done() <-chan struct{} { return r.process.Done() }

// integer reads an answer of the Redis protocol, of which only an integer is
// right: ":123\r\n".
func integer(in *bufio.Reader) error {
	line, err := in.ReadString('\n')
	if err != nil {
		return fmt.Errorf("read from redis: %w", err)
	}
	if !strings.HasPrefix(line, ":") {
		return fmt.Errorf("read %.80q from redis: %w", line, ErrAnswer)
	}
	return nil
}

// Close ends it; nil was never started.
func (r *Redis) Close() {
	if r != nil {
		r.pool.Close()
		r.process.Close()
	}
}
