package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Check is [Load], and looks besides whether every file that the configuration names is
// there and can be read. The error is [Errors], or that of reading the file.
func Check(path string) (*Config, error) {
	c, d, err := load(path, nil, nil)
	if err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(d.texts)) {
		if namesFile(key) {
			d.named(key, filepath.Dir(path))
		}
	}
	if root := c.Actuator.CgroupRoot; root != "" {
		d.directory("actuator.cgroup_root", root)
	}
	d.pair("nats.tls", c.NATS.TLS)
	d.pair("otlp.tls", c.OTLP.TLS)
	d.pair("exporters.otlp.tls", c.Exporters.OTLP.TLS)
	d.pair("exporters.keda.tls", c.Exporters.KEDA.TLS)
	if len(d.errs) > 0 {
		return nil, d.errs.ordered()
	}
	return c, nil
}

// namesFile reports whether the value of a key is the name of a file that is there
// before trimtab starts.
func namesFile(key string) bool {
	name := lastOf(key)
	return strings.HasSuffix(name, "_file") || name == "profile" && strings.HasSuffix(key, "fallback.profile") || strings.HasPrefix(name, "files[")
}

// named checks the file that a key names.
func (d *decoder) named(key, dir string) {
	name := scalarText(d.texts[key])
	if name == "" {
		return
	}
	shown := clip(name)
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	fail := func(message, hint string) { d.report(d.where(key), message, hint) }
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fail(fmt.Sprintf("%s names %s, which is not there", lastOf(key), shown), "create it, or write another name: it is relative to this file's directory")
		return
	case errors.Is(err, fs.ErrPermission):
		fail(fmt.Sprintf("%s names %s, which this user may not look at", lastOf(key), shown), "run the check as the user that trimtab runs as, or let that user read it")
		return
	case err != nil:
		fail(fmt.Sprintf("%s names %s: %v", lastOf(key), shown, causeOf(err)), "write the name of a file")
		return
	case !info.Mode().IsRegular():
		fail(fmt.Sprintf("%s names %s, which is no file", lastOf(key), shown), "write the name of a file")
		return
	case info.Size() == 0:
		fail(fmt.Sprintf("%s names %s, which is empty", lastOf(key), shown), "write what belongs there, or remove the key")
		return
	}
	f, err := os.Open(name)
	if err != nil {
		fail(fmt.Sprintf("%s names %s, which this user may not read", lastOf(key), shown), "run the check as the user that trimtab runs as, or let that user read it")
		return
	}
	f.Close()
}

// directory refuses what is none.
func (d *decoder) directory(key, name string) {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		d.report(d.where(key), fmt.Sprintf("%s %s is no directory here", lastOf(key), clip(name)), "write the mount point of cgroups, such as /sys/fs/cgroup, or remove the key")
	}
}

// pair looks whether certificate and key are PEM and belong together.
func (d *decoder) pair(path string, t TLS) {
	if t.CertFile == "" || t.KeyFile == "" || len(d.errs) > 0 {
		return
	}
	if _, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile); err != nil {
		d.report(d.where(path+".cert_file"), "certificate and key cannot be used: "+clip(firstLine(err.Error())), "cert_file is the PEM chain, key_file its private key")
	}
}

// causeOf is an error without the path that the message names already.
func causeOf(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
