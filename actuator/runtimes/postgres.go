package runtimes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// postgres is a PostgreSQL server, asked through psql. work_mem and maintenance_work_mem are changed
// by ALTER SYSTEM in proportion to what the limit leaves beside shared_buffers, which cannot be
// changed without a restart. Queries that run keep what they have until they end.
type postgres struct {
	at      *actuator.Runtime
	process Process
	members []int
}

// workMemory lists the parameters that are changed, and the least that PostgreSQL accepts for them, in
// kB.
func workMemory() []parameter {
	return []parameter{{"work_mem", 64}, {"maintenance_work_mem", 1024}}
}

type parameter struct {
	name  string
	least int64
}

// findPostgres finds the process that listens at the socket: the postmaster.
func findPostgres(ctx context.Context, at *actuator.Runtime, members []int) ([]Program, error) {
	if len(members) == 0 {
		return nil, nil
	}
	c, of, err := listening(ctx, members, at.Address)
	if err != nil {
		return nil, fmt.Errorf("find PostgreSQL: %w", err)
	}
	return []Program{&postgres{at, of, members}}, c.Close()
}

func (p *postgres) String() string { return fmt.Sprintf("PostgreSQL %d", p.process.PID) }

func (p *postgres) Process() Process { return p.process }

// psql runs statements and returns the last line of the output. It connects inside the root directory
// of the postmaster, which must still be the one that listens.
func (p *postgres) psql(ctx context.Context, statements ...string) (string, error) {
	c, of, err := listening(ctx, p.members, p.at.Address)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", p, err)
	}
	_ = c.Close()
	if of != p.process {
		return "", fmt.Errorf("ask %s: process %d listens now: %w", p, of.PID, os.ErrNotExist)
	}
	dir, port := filepath.Dir(p.at.Address), strings.TrimPrefix(filepath.Ext(p.at.Address), ".")
	args := []string{"--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--no-password", "--set=ON_ERROR_STOP=1",
		fmt.Sprintf("--host=/proc/%d/root%s", p.process.PID, dir), "--port=" + port, "--dbname=postgres"}
	if p.at.User != "" {
		args = append(args, "--username="+p.at.User)
	}
	for _, s := range statements {
		args = append(args, "--command="+s)
	}
	cmd := exec.CommandContext(ctx, "psql", args...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), "PGAPPNAME=trimtab")
	if p.at.PasswordFile != "" {
		password, err := secret(p.at.PasswordFile)
		if err != nil {
			return "", err
		}
		cmd.Env = append(cmd.Env, "PGPASSWORD="+password)
	}
	out, err := cmd.Output()
	if err != nil {
		text := ""
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			text = strings.TrimSpace(string(exit.Stderr))
		}
		return "", fmt.Errorf("ask %s through psql: %w: %.200s", p, errors.Join(err, ctx.Err()), text)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1], nil
}

// settings are what PostgreSQL says of itself. Work has the value of each parameter in kB, in the
// order of workMemory, and Own the text of those that ALTER SYSTEM has set; "": it has not.
type settings struct {
	Shared float64  `json:"shared,omitempty"`
	Work   []int64  `json:"work"`
	Own    []string `json:"own"`
}

// lookQuery yields settings. pg_settings has shared_buffers in units of 8 kB, and the others in kB.
const lookQuery = `SELECT json_build_object(
 'shared', (SELECT setting::float8 * 8192 FROM pg_settings WHERE name = 'shared_buffers'),
 'work', json_agg(s.setting::bigint ORDER BY s.name DESC),
 'own', json_agg(coalesce((SELECT f.setting FROM pg_file_settings f WHERE f.name = s.name AND f.sourcefile LIKE '%postgresql.auto.conf' ORDER BY f.seqno DESC LIMIT 1), '') ORDER BY s.name DESC))
 FROM pg_settings s WHERE s.name IN ('work_mem', 'maintenance_work_mem')`

func (p *postgres) look(ctx context.Context) (s settings, err error) {
	text, err := p.psql(ctx, strings.Join(strings.Fields(lookQuery), " "))
	if err != nil {
		return s, err
	}
	if s, err = parsePostgres(text); err == nil && !(s.Shared > 0 && s.Shared < 1<<50) {
		err = trimtab.Invalidf("it has shared_buffers of %v bytes", s.Shared)
	}
	if err != nil {
		err = fmt.Errorf("ask %s: %w", p, err)
	}
	return s, err
}

func parsePostgres(text string) (s settings, err error) {
	if err = json.Unmarshal([]byte(text), &s); err != nil {
		return s, trimtab.Invalidf("settings of PostgreSQL %.80q: %w", text, err)
	}
	if len(s.Work) != len(workMemory()) || len(s.Own) != len(workMemory()) {
		return s, trimtab.Invalidf("settings of PostgreSQL %.120q", text)
	}
	for i, own := range s.Own {
		if s.Work[i] <= 0 || s.Work[i] > math.MaxInt32 || strings.Trim(own, "0123456789kMGTB. ") != "" {
			return s, trimtab.Invalidf("%s of PostgreSQL is %d kB, and %.40q in postgresql.auto.conf", workMemory()[i].name, s.Work[i], own)
		}
	}
	return s, nil
}

// Read asks for the settings. The anonymous memory of all its processes is what queries may give back.
func (p *postgres) Read(ctx context.Context) (State, error) {
	s, err := p.look(ctx)
	if err != nil {
		return State{}, err
	}
	held := s.Shared
	for _, pid := range p.members {
		if of, err := processOf(pid); err == nil {
			if st, err := of.status(); err == nil {
				held += st.anon
			}
		}
	}
	own, err := json.Marshal(settings{Work: s.Work, Own: s.Own})
	return State{Setting: string(own), Held: held, Least: s.Shared}, err
}

// Set changes the parameters in proportion to what the limit leaves beside shared_buffers.
func (p *postgres) Set(ctx context.Context, to Room, was State) error {
	before, err := parsePostgres(was.Setting)
	if err != nil {
		return err
	}
	now, err := p.look(ctx)
	if err != nil {
		return err
	}
	if to.Bytes < now.Shared {
		return fmt.Errorf("its shared_buffers of %s cannot be changed without a restart: %w", bytesOf(now.Shared), needs(p, now.Shared, to))
	}
	part := 1.0
	if to.Before > 0 {
		part = min(1, (to.Goal/(1+margin)-now.Shared)/(to.Before/(1+margin)-now.Shared))
	}
	if !(part > 0) {
		return needs(p, now.Shared, to)
	}
	goal := settings{Work: make([]int64, len(workMemory())), Own: make([]string, len(workMemory()))}
	for i, w := range workMemory() {
		goal.Work[i] = min(before.Work[i], max(w.least, int64(part*float64(before.Work[i]))))
		goal.Own[i] = strconv.FormatInt(goal.Work[i], 10) + "kB"
	}
	return p.set(ctx, goal)
}

// set writes the parameters, has them read, and waits until a new session has them.
func (p *postgres) set(ctx context.Context, goal settings) error {
	var all []string
	for i, w := range workMemory() {
		if goal.Own[i] == "" {
			all = append(all, "ALTER SYSTEM RESET "+w.name)
		} else {
			all = append(all, "ALTER SYSTEM SET "+w.name+" = '"+goal.Own[i]+"'")
		}
	}
	if _, err := p.psql(ctx, append(all, "SELECT pg_reload_conf()")...); err != nil {
		return err
	}
	for {
		s, err := p.look(ctx)
		if err != nil || slices.Equal(s.Work, goal.Work) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s was set to %v kB of %s and %s, and still has %v: a command line or a role may say otherwise: %w", p, goal.Work, workMemory()[0].name, workMemory()[1].name, s.Work, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Free does nothing: a query that ends gives its memory back by itself.
func (p *postgres) Free(context.Context, Room) error { return nil }

// Restore sets the parameters to what they were: those that ALTER SYSTEM had not set are left to
// postgresql.conf again.
func (p *postgres) Restore(ctx context.Context, setting string) error {
	before, err := parsePostgres(setting)
	if err != nil {
		return err
	}
	return p.set(ctx, before)
}
