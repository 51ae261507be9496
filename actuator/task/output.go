package task

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/trimtab/trimtab/internal/hostfs"
)

// The files of a task's output: one for the first half of the kept bytes, and two of a quarter each
// for the end. When the newer of the two is full, it replaces the older.
const (
	headFile  = "output.head"
	olderFile = "output.older"
	newerFile = "output.newer"
)

const (
	// outputRate is how many bytes of output a second are read from one task. A task that writes
	// faster blocks, so that it costs the agent at most some percent of a core.
	outputRate = 8 << 20
	// lastBytes and lastLines are the limits of LastLines in Info.
	lastBytes = 2 << 10
	lastLines = 20
)

// output keeps the first and the last bytes that a task prints. A full disk loses output; it
// never stops a task.
type output struct {
	dir   string
	limit int64
	pipe  *os.File
	done  chan struct{}

	mu          sync.Mutex
	head, newer *os.File
	headed      int64 // bytes in head
	fresh       int64 // bytes in newer
	older       int64 // bytes in older
	total       int64
	last        []byte
	problem     error
}

// openOutput empties the directory and returns the file to which a process must print. The caller
// must close it in any case.
func openOutput(dir string, limit int64) (*output, *os.File, error) {
	err := os.RemoveAll(dir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make directory of output: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make pipe of output: %w", err)
	}
	o := &output{dir: dir, limit: limit, pipe: r, done: make(chan struct{})}
	go o.copy()
	return o, w, nil
}

// copy reads until all writers have ended, or until the pipe's deadline.
func (o *output) copy() {
	defer close(o.done)
	defer o.pipe.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := o.pipe.Read(buffer)
		o.take(buffer[:n])
		if err != nil {
			break
		}
		time.Sleep(time.Duration(n) * time.Second / outputRate)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range []*os.File{o.head, o.newer} {
		if f != nil {
			f.Close()
		}
	}
	o.head, o.newer = nil, nil
}

// end reads the rest of the pipe, for at most a second: a process outside of the group may still
// have it open.
func (o *output) end() {
	_ = o.pipe.SetReadDeadline(time.Now().Add(time.Second)) // if this fails, the pipe is closed
	<-o.done
}

func (o *output) take(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(b))
	o.last = append(o.last, b...)
	if extra := len(o.last) - lastBytes; extra > 0 {
		o.last = append(o.last[:0], o.last[extra:]...)
	}
	for len(b) > 0 {
		n, err := o.store(b)
		if err != nil {
			o.problem = err
			return
		}
		b = b[n:]
	}
}

// store writes as much as fits into one file, at least one byte.
func (o *output) store(b []byte) (int, error) {
	if half := o.limit / 2; o.headed < half {
		return o.write(&o.head, headFile, &o.headed, b[:min(int64(len(b)), half-o.headed)])
	}
	quarter := o.limit / 4
	if o.fresh >= quarter {
		o.newer.Close()
		o.newer = nil
		if err := os.Rename(filepath.Join(o.dir, newerFile), filepath.Join(o.dir, olderFile)); err != nil {
			return 0, err
		}
		o.older, o.fresh = o.fresh, 0
	}
	return o.write(&o.newer, newerFile, &o.fresh, b[:min(int64(len(b)), quarter-o.fresh)])
}

func (o *output) write(f **os.File, name string, size *int64, b []byte) (int, error) {
	if *f == nil {
		opened, err := os.OpenFile(filepath.Join(o.dir, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
		if err != nil {
			return 0, err
		}
		*f = opened
	}
	n, err := (*f).Write(b)
	*size += int64(n)
	return n, err
}

// told sets the fields of Info about output.
func (o *output) told(i *Info) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i.Output, i.Dropped = o.total, o.total-o.headed-o.fresh-o.older
	i.LastLines = lines(o.last, o.total > int64(len(o.last)))
	if o.problem != nil && i.Problem == "" {
		i.Problem = "some output is lost: " + o.problem.Error()
	}
}

// lines returns the last lines of b; the first may be incomplete. It removes control characters,
// which could reprogram the reader's terminal.
func lines(b []byte, cut bool) []string {
	b = bytes.TrimRight(b, "\n")
	if len(b) == 0 {
		return nil
	}
	all := strings.Split(strings.ToValidUTF8(string(b), "�"), "\n")
	if cut && len(all) > 1 {
		all = all[1:]
	}
	all = all[max(0, len(all)-lastLines):]
	for i, line := range all {
		all[i] = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\t' {
				return -1
			}
			return r
		}, line)
	}
	return all
}

// Output is the part of a task's output that was kept.
type Output struct {
	// Head has the first bytes, Tail the last; Dropped is the number of bytes between them.
	Head, Tail []byte
	Dropped    int64
}

// readOutput reads the output files in a directory, even those of another agent's task.
func readOutput(dir string) (Output, error) {
	var out Output
	for _, name := range []string{headFile, olderFile, newerFile} {
		b, err := readAtMost(filepath.Join(dir, name), maxOutput)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return Output{}, fmt.Errorf("read output: %w", err)
		}
		if name == headFile {
			out.Head = b
		} else {
			out.Tail = append(out.Tail, b...)
		}
	}
	return out, nil
}

func readAtMost(name string, limit int64) ([]byte, error) {
	f, err := hostfs.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}
