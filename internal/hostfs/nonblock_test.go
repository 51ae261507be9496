package hostfs

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Found with Linux 7.3: 320 MiB stayed under a memory limit of 40 MiB. Since 6.16 the kernel
// looks at the flags of the descriptor (mm/memcontrol.c, memory_max_write: with O_NONBLOCK
// it sets the limit and reclaims nothing). A pipe in the place of a file must not hang the
// caller all the same.
func TestAFileThatIsWrittenIsNotOpenNonBlocking(t *testing.T) {
	dir := files(t, map[string]string{"memory.max": "max\n"})
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	kept, err := r.Keep("memory.max", true)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	once, err := r.file("memory.max", os.O_WRONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer once.Close()
	for _, f := range []*os.File{kept.f, once} {
		raw, err := f.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		err = raw.Control(func(fd uintptr) {
			if flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
				t.Errorf("flags %#o, %v", flags, err)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
	if err := r.Write("pipe", "1"); err == nil {
		t.Error("a pipe was written")
	}
}
