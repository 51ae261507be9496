// Command image packs built binaries as one OCI image for several architectures,
// without a daemon and without a base:
//
//	go run ./internal/tools/image --version 0.2.0 --out trimtab.oci.tar amd64=dist/amd64/trimtab
//
// The file is an archive of an OCI image layout (image-spec 1.1), which skopeo,
// podman and docker read. Its only layer has the program, a /tmp, and a directory
// for data that user 65532 may write. The same binaries, version and time give the
// same bytes.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	version := flag.String("version", "", "version of the image")
	out := flag.String("out", "", "file to write")
	epoch := flag.Int64("epoch", 0, "time of all files, in seconds since 1970")
	flag.Parse()
	if err := write(*out, *version, time.Unix(*epoch, 0).UTC(), flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "image: error:", err)
		os.Exit(1)
	}
}

// write makes the archive of binaries, each named as ARCHITECTURE=FILE.
func write(out, version string, at time.Time, binaries []string) error {
	w := &layout{at: at}
	var manifests []any
	for _, b := range binaries {
		arch, file, ok := strings.Cut(b, "=")
		if !ok {
			return fmt.Errorf("read argument %q: want ARCHITECTURE=FILE", b)
		}
		program, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read binary: %w", err)
		}
		m, err := w.image(program, arch, version)
		if err != nil {
			return fmt.Errorf("pack %s: %w", arch, err)
		}
		manifests = append(manifests, m)
	}
	if len(manifests) == 0 {
		return fmt.Errorf("pack image: no binaries")
	}
	archive, err := w.archive(manifests, version)
	if err != nil {
		return fmt.Errorf("pack image: %w", err)
	}
	if err := os.WriteFile(out, archive, 0o644); err != nil {
		return fmt.Errorf("write image: %w", err)
	}
	return nil
}
