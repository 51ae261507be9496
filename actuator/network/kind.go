package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Kind describes this kind of knob. A location is an interface, such as eth0, or one in a network
// namespace, such as batch/eth0, whose file is in the root. With a * in either name each match is
// an instance. The host's capacity to send is not measured: an interface may share its link with
// others.
func Kind() actuator.Kind {
	return actuator.Kind{
		Name: "network", Resources: []string{trimtab.Network},
		Probe: func(at actuator.Location) (actuator.Location, error) { return at, nil },
		Find:  find,
		Open: func(at actuator.Location, _ string) (actuator.Knob, error) {
			return actuator.OrNil(Open(configOf(at)))
		},
		Reopen: actuator.Reopens(Reopen),
	}
}

func configOf(at actuator.Location) Config {
	namespace, name := path.Split(at.Path)
	c := Config{Namespace: strings.TrimSuffix(namespace, "/"), Interface: name}
	if c.Namespace != "" {
		c.Root = at.Root
	}
	return c
}

// find lists the matching namespaces, or interfaces of one: at most hostfs.MaxInstances, else
// none. A folder or namespace that does not exist has none.
func find(ctx context.Context, at actuator.Location) ([]actuator.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("find instances of %s: %w", at.Path, err)
	}
	c := configOf(at)
	list, pattern := func() ([]actuator.Instance, error) { return namespaces(c.Root) }, c.Namespace
	if !strings.Contains(pattern, "*") {
		list, pattern = func() ([]actuator.Instance, error) { return interfaces(c.file()) }, c.Interface
	}
	all, err := list()
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find instances of %s: %w", at.Path, err)
	}
	before, after, _ := strings.Cut(pattern, "*")
	var found []actuator.Instance
	for _, i := range all {
		name, ok := strings.CutPrefix(i.Name, before)
		if ok {
			name, ok = strings.CutSuffix(name, after)
		}
		if ok && name != "" && plain(name) {
			found = append(found, actuator.Instance{Name: name, ID: i.ID})
		}
	}
	if len(found) > hostfs.MaxInstances {
		return nil, fmt.Errorf("find instances of %s: %d match, at most %d may: %w", at.Path, len(found), hostfs.MaxInstances, trimtab.ErrRefused)
	}
	slices.SortFunc(found, func(a, b actuator.Instance) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

// Sent returns the number of bytes that each interface of a location in network namespaces has sent
// since it was created, by instance; the key is "" if the location is a single interface. It leaves
// out interfaces that it cannot read.
func Sent(ctx context.Context, at actuator.Location) map[string]uint64 {
	names := []string{""}
	if at.Several() {
		found, err := find(ctx, at)
		if err != nil {
			return nil
		}
		names = names[:0]
		for _, i := range found {
			names = append(names, i.Name)
		}
	}
	out := map[string]uint64{}
	for _, name := range names {
		one := at
		one.Path = strings.Replace(at.Path, "*", name, 1)
		if v, ok := sent(configOf(one)); ok {
			out[name] = v
		}
	}
	return out
}

// sent returns how many bytes one interface has sent.
func sent(c Config) (uint64, bool) {
	if c.Namespace == "" {
		return 0, false // an interface of the host may carry the traffic of others
	}
	s, err := enter(c.file())
	if err != nil {
		return 0, false
	}
	defer s.Close()
	l, err := s.link(c.Interface)
	if err != nil || l.Attrs().Statistics == nil {
		return 0, false
	}
	return l.Attrs().Statistics.TxBytes, true
}

// namespaces lists the files of namespaces in a folder. The inode distinguishes a namespace from a
// later one with the same name.
func namespaces(dir string) (all []actuator.Instance, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		var x unix.Stat_t
		var s unix.Statfs_t
		file := filepath.Join(dir, e.Name())
		if unix.Stat(file, &x) != nil || unix.Statfs(file, &s) != nil || s.Type != unix.NSFS_MAGIC {
			continue // a file left of a namespace that ended, or something else
		}
		all = append(all, actuator.Instance{Name: e.Name(), ID: x.Ino})
	}
	return all, nil
}

// interfaces lists the interfaces of a namespace. Their index distinguishes them from later ones
// with the same name.
func interfaces(file string) (all []actuator.Instance, err error) {
	s, err := enter(file)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	links, err := s.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	for _, l := range links {
		all = append(all, actuator.Instance{Name: l.Attrs().Name, ID: uint64(l.Attrs().Index)})
	}
	return all, nil
}
