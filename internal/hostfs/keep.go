package hostfs

import (
	"strings"
	"sync"
	"syscall"
)

const (
	// maxOpen bounds the files that a root keeps open; the kernel has a page for each.
	maxOpen = 512
	// openReads is the number of reads after which a file is opened again: a group of version 1 can
	// be renamed, and another created with its name.
	openReads = 60
)

// kept are the kernel's files that a root keeps open.
type kept struct {
	mu    sync.Mutex
	files map[string]*keptFile // nil: none is kept
	buf   []byte               // buffer of quickMax bytes with the last read
}

type keptFile struct {
	fd, reads int
}

// KeepOpen makes [Root.Read] keep the kernel's files open, for files that are read repeatedly:
// one system call in place of three. Reading a file that is gone fails, and the next read opens
// it again.
func (r *Root) KeepOpen() {
	if r.kind == Cgroup1 || r.kind == Cgroup2 {
		r.kept.mu.Lock()
		defer r.kept.mu.Unlock()
		r.kept.files, r.kept.buf = map[string]*keptFile{}, make([]byte, quickMax)
	}
}

// read reads an open file; false: it is not open, or must not be read this way.
func (k *kept) read(name string) (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.files[name]
	if f == nil {
		return "", false
	}
	n, err := syscall.Pread(f.fd, k.buf, 0)
	if f.reads++; err != nil || n >= quickMax/2 || f.reads > openReads {
		delete(k.files, name)
		_ = syscall.Close(f.fd) // it was only read
		return "", false
	}
	return string(k.buf[:n]), true
}

// keep takes over an open file; false: the caller must close it.
func (k *kept) keep(name string, fd int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.files == nil || k.files[name] != nil {
		return false
	}
	if len(k.files) >= maxOpen { // some may belong to groups that are no longer read
		k.close()
	}
	k.files[name] = &keptFile{fd: fd}
	return true
}

// Forget closes the files kept open in a directory and beneath it, when they are no longer read
// or are gone.
func (r *Root) Forget(dir string) {
	k := &r.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, f := range k.files {
		if strings.HasPrefix(name, dir+"/") {
			_ = syscall.Close(f.fd) // it was only read
			delete(k.files, name)
		}
	}
}

// forget closes all.
func (k *kept) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.close()
	k.files = nil
}

// close closes all files. The caller holds mu.
func (k *kept) close() {
	for _, f := range k.files {
		_ = syscall.Close(f.fd) // it was only read
	}
	clear(k.files)
}
