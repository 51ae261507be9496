package runtimes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/adminapi"
	"github.com/trimtab/trimtab/memlimit"
)

// golang is a Go program that serves package memlimit at a Unix socket.
type golang struct {
	process Process
	// path is the socket in the root directory of the process, and members are the processes of the
	// group, in one of whose root directories it is.
	path    string
	members []int
}

// findGo finds the process that listens at the socket.
func findGo(ctx context.Context, at *actuator.Runtime, members []int) ([]Program, error) {
	if len(members) == 0 {
		return nil, nil
	}
	c, p, err := listening(ctx, members, at.Address)
	if err != nil {
		return nil, fmt.Errorf("find Go program: %w", err)
	}
	return []Program{&golang{p, at.Address, members}}, c.Close()
}

func (g *golang) String() string { return fmt.Sprintf("Go program %d", g.process.PID) }

func (g *golang) Process() Process { return g.process }

// dial connects to the program, and to no other.
func (g *golang) dial(ctx context.Context) (net.Conn, error) {
	c, p, err := listening(ctx, g.members, g.path)
	if err == nil && p != g.process {
		c.Close()
		return nil, fmt.Errorf("process %d listens now: %w", p.PID, os.ErrNotExist)
	}
	return c, err
}

// ask sends one request to the handler.
func (g *golang) ask(ctx context.Context, method string, body []byte) (s memlimit.State, err error) {
	api := adminapi.API{Name: g.String(), Start: "serve package memlimit there", Most: 4 << 10, Dial: g.dial}
	b, err := api.Call(ctx, "unix:"+g.path, method, "/", body)
	if err != nil {
		return s, err
	}
	if s, err = parseGo(b); err != nil {
		return s, fmt.Errorf("ask %s: %w", g, err)
	}
	return s, nil
}

// parseGo decodes an answer of package memlimit.
func parseGo(b []byte) (s memlimit.State, err error) {
	if err := json.Unmarshal(b, &s); err != nil {
		return s, trimtab.Invalidf("%.80q is no answer of package memlimit: %w", b, err)
	}
	if s.PID <= 0 || s.Limit <= 0 || s.Held <= 0 || s.Live < 0 || s.Held > 1<<50 {
		return s, trimtab.Invalidf("%.120q is no answer of package memlimit", b)
	}
	s.Live = min(s.Live, s.Held)
	return s, nil
}

// Read asks for its state.
func (g *golang) Read(ctx context.Context) (State, error) {
	s, err := g.ask(ctx, http.MethodGet, nil)
	return State{Setting: strconv.FormatInt(s.Limit, 10), Held: float64(s.Held), Least: float64(s.Live)}, err
}

// Set sets the memory limit.
func (g *golang) Set(ctx context.Context, to Room, was State) error {
	before, err := strconv.ParseInt(was.Setting, 10, 64)
	if err != nil {
		return trimtab.Invalidf("the memory limit of %s was %.40q", g, was.Setting)
	}
	if err := g.fits(ctx, to); err != nil {
		return err
	}
	return g.set(ctx, min(before, int64(math.Min(to.Bytes, 1<<50))))
}

// fits returns an error if the collector would run all the time in the room.
func (g *golang) fits(ctx context.Context, to Room) error {
	s, err := g.ask(ctx, http.MethodGet, nil)
	if err == nil && heapNeed*float64(s.Live) > to.Bytes {
		err = needs(g, heapNeed*float64(s.Live), to)
	}
	return err
}

func (g *golang) set(ctx context.Context, limit int64) error {
	s, err := g.ask(ctx, http.MethodPut, fmt.Appendf(nil, `{"limit":%d}`, limit))
	if err == nil && s.Limit != limit {
		err = trimtab.Invalidf("set the memory limit of %s to %d, read back %d", g, limit, s.Limit)
	}
	return err
}

// Free runs a collection and gives back what is free. Only then is it known what is in use.
func (g *golang) Free(ctx context.Context, to Room) error {
	_, err := g.ask(ctx, http.MethodPost, nil)
	return errors.Join(err, g.fits(ctx, to))
}

// Restore sets the memory limit to what it was.
func (g *golang) Restore(ctx context.Context, setting string) error {
	limit, err := strconv.ParseInt(setting, 10, 64)
	if err != nil || limit <= 0 {
		return trimtab.Invalidf("the memory limit of %s was %.40q", g, setting)
	}
	return g.set(ctx, limit)
}
