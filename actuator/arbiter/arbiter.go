package arbiter

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Arbiter publishes one claimant's claims and reads those of all other claimants of a host. It is
// not safe for concurrent use.
type Arbiter struct {
	dir    string
	who    Claimant
	logger *slog.Logger
	// file is the claimant's file, locked as long as the claimant lives.
	file *hostfs.Lock
	// claimed are the claims in the file.
	claimed map[string]Claim
	// others has the others' claims at the last read, with the claims of dead claimants at their
	// maximum; dead are the records of dead claimants.
	others []record
	dead   []*record
}

const (
	// askWait is how long a raise waits for the lock on the claims. Another claimant has it for less
	// than a millisecond, unless that process was stopped.
	askWait = 250 * time.Millisecond
	// slack is the largest error of the sum of all claims from rounding to the knobs' units.
	slack = 1e-3
	// maxClaimants bounds the claims of one host.
	maxClaimants = 256
	// suffix is the ending of a claimant's file; aside is appended to the name of an invalid one.
	suffix, aside = ".claim", ".damaged"
)

// New returns the arbiter of a claimant; dir must be the same for all claimants of a host. It
// touches no file.
func New(dir string, who Claimant, logger *slog.Logger) *Arbiter {
	return &Arbiter{dir: dir, who: who, logger: logger, claimed: map[string]Claim{}}
}

// Settle writes this claimant's claims, granted or not, and reads those of the others. If another
// holds the lock the error is trimtab.ErrRefused, and nothing changes. It waits for the lock only
// if the published claims are too low, so that others would count too little for this claimant.
func (a *Arbiter) Settle(ctx context.Context, claims map[string]Claim) error {
	wait := time.Duration(0)
	if a.more(claims) {
		wait = askWait
	}
	leave, err := a.enter(ctx, wait)
	if err != nil {
		return err
	}
	defer leave()
	// The claimant's own claims come first, in case the others' cannot be read.
	return errors.Join(a.write(ctx, claims), a.gather(ctx))
}

// more reports whether claims exceed the published ones.
func (a *Arbiter) more(claims map[string]Claim) bool {
	for resource, c := range claims {
		if was, ok := a.claimed[resource]; !ok || a.file == nil || c.Now > was.Now || c.May > was.May || c.Idle > was.Idle {
			return true
		}
	}
	return false
}

// Ask raises the claim on a resource to want, or to what is available, and returns the new claim,
// which is never below what the claimant has. claims are its present claims. On an error it grants
// nothing new.
func (a *Arbiter) Ask(ctx context.Context, claims map[string]Claim, resource string, want float64) (granted float64, err error) {
	err = a.raise(ctx, claims, resource, func(c *Claim, others []Claim) {
		c.Now = max(c.Now, min(want, Headroom(*c, others)+slack))
		c.May = max(c.May, c.Now)
	})
	return a.claimed[resource].Now, err
}

// AskIdle does as Ask for [Claim.Idle], of which all claimants together may promise at most whole.
func (a *Arbiter) AskIdle(ctx context.Context, claims map[string]Claim, resource string, want, whole float64) (granted float64, err error) {
	err = a.raise(ctx, claims, resource, func(c *Claim, others []Claim) {
		c.Idle = max(c.Idle, min(want, IdleRoom(*c, others, whole)+slack))
	})
	return a.claimed[resource].Idle, err
}

// raise publishes claims, of which up raises the one on a resource, given the others' claims on it.
func (a *Arbiter) raise(ctx context.Context, claims map[string]Claim, resource string, up func(c *Claim, others []Claim)) error {
	leave, err := a.enter(ctx, askWait)
	if err != nil {
		return err
	}
	defer leave()
	if err := a.gather(ctx); err != nil {
		return err
	}
	claims = maps.Clone(claims)
	claim := claims[resource]
	up(&claim, a.of(resource))
	claims[resource] = claim
	return a.write(ctx, claims)
}

// Claimed returns this claimant's published claim.
func (a *Arbiter) Claimed(resource string) Claim { return a.claimed[resource] }

// Left returns [Headroom] by the last read.
func (a *Arbiter) Left(resource string, own Claim) float64 { return Headroom(own, a.of(resource)) }

// IdleRoom returns [IdleRoom] by the last read.
func (a *Arbiter) IdleRoom(resource string, own Claim, whole float64) float64 {
	return IdleRoom(own, a.of(resource), whole)
}

// Others returns the sum of the others' claims on a resource that compete with own.
func (a *Arbiter) Others(resource string, own Claim) (sum float64) {
	for _, s := range a.Shares(resource, own) {
		sum += s.May
	}
	return sum
}

// of lists the others' claims on a resource.
func (a *Arbiter) of(resource string) (all []Claim) {
	for i := range a.others {
		if c, ok := a.others[i].Claims[resource]; ok {
			all = append(all, c)
		}
	}
	return all
}

// Share is the amount of a resource that one other claimant may use.
type Share struct {
	Claimant
	May float64
}

// Shares returns the amount that each of the others may use of a resource, the largest first, for
// claims that compete with own.
func (a *Arbiter) Shares(resource string, own Claim) (all []Share) {
	for i := range a.others {
		o := &a.others[i]
		if c, ok := o.Claims[resource]; ok && claimed(own, []Claim{c}) {
			all = append(all, Share{o.Claimant, c.May})
		}
	}
	slices.SortFunc(all, func(x, y Share) int {
		return cmp.Or(cmp.Compare(y.May, x.May), strings.Compare(x.Pool, y.Pool), cmp.Compare(x.PID, y.PID))
	})
	return all
}

// Dead lists the journals of claimants that were dead when claims were read last. It leaves out
// those with a group: their claims end by themselves, with their processes.
func (a *Arbiter) Dead() (journals []string) {
	for _, r := range a.dead {
		journals = append(journals, r.Journal)
	}
	return journals
}

// Drop removes the claims of claimants that Dead listed and whose journals have nothing left to
// restore. A claimant that runs again keeps its claim.
func (a *Arbiter) Drop(ctx context.Context, journals []string) error {
	leave, err := a.enter(ctx, 0)
	if err != nil {
		return err
	}
	defer leave()
	for _, r := range a.dead {
		if slices.Contains(journals, r.Journal) {
			err = errors.Join(err, a.drop(ctx, r))
		}
	}
	return errors.Join(err, a.gather(ctx))
}

func (a *Arbiter) drop(ctx context.Context, was *record) error {
	path := a.pathOf(&was.Claimant)
	r, lives, err := a.read(ctx, path)
	if err != nil || r == nil || lives || r.Claimant != was.Claimant || !same(r.Claims, was.Claims) {
		return err
	}
	return os.Remove(path)
}

// Close removes the claim if over is true; otherwise the claim stays, as that of a dead claimant.
func (a *Arbiter) Close(over bool) error {
	if a.file == nil {
		return nil
	}
	file := a.file
	a.file = nil
	if over {
		return file.Remove()
	}
	return file.Close()
}

// enter locks out all other claimants of the host until leave is called.
func (a *Arbiter) enter(ctx context.Context, wait time.Duration) (leave func(), err error) {
	// The directory may have been removed: /run is empty after a boot.
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of claims: %w", err)
	}
	lock, err := hostfs.AcquireFile(ctx, filepath.Join(a.dir, "lock"), wait)
	if err != nil {
		return nil, fmt.Errorf("read the claims on this host: %w", err)
	}
	return func() { _ = lock.Close() }, nil
}

// pathOf returns the file of a claimant. The pool is part of the name, as two containers may both
// have their journal under the same path.
func (a *Arbiter) pathOf(who *Claimant) string {
	sum := sha256.Sum256([]byte(who.Journal + "\x00" + who.Pool))
	return filepath.Join(a.dir, hex.EncodeToString(sum[:8])+suffix)
}

// gather reads the others' claims. On an error the claims read before stay.
func (a *Arbiter) gather(ctx context.Context) error {
	dir, err := os.Open(a.dir)
	if err != nil {
		return fmt.Errorf("read the claims on this host: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(4 * maxClaimants)
	if err != nil && !errors.Is(err, io.EOF) { // EOF: the directory is empty
		return fmt.Errorf("read the claims on this host: %w", err)
	}
	if len(names) == 4*maxClaimants {
		return trimtab.Invalidf("%s has %d files or more, which are not all claims: remove what does not belong there", a.dir, len(names))
	}
	slices.Sort(names)
	own := filepath.Base(a.pathOf(&a.who))
	var others []record
	var dead []*record
	living := 0
	for _, name := range names {
		if name == own || !strings.HasSuffix(name, suffix) {
			continue
		}
		r, lives, err := a.read(ctx, filepath.Join(a.dir, name))
		switch {
		case err != nil:
			return err
		case r == nil:
			continue
		case !lives:
			if r.Group == "" {
				dead = append(dead, r)
			}
			others = append(others, record{r.Claimant, utmost(r.Claims)})
		default:
			living++
			others = append(others, *r)
		}
		if living > maxClaimants { // the dead do not count: they may be many, and are removed later
			return trimtab.Invalidf("%s has more than %d claims", a.dir, maxClaimants)
		}
	}
	a.others, a.dead = others, dead
	return nil
}

// utmost returns a dead claimant's claims at their maximum: another process may be restoring its
// knobs now.
func utmost(claims map[string]Claim) map[string]Claim {
	all := maps.Clone(claims)
	for resource, c := range all {
		c.Now = c.May
		all[resource] = c
	}
	return all
}

// read reads another claimant's file; nil: there is none. It moves an invalid file aside, unless
// the owner lives and will write it again.
func (a *Arbiter) read(ctx context.Context, path string) (r *record, lives bool, err error) {
	r, err = readRecord(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	lives = hostfs.Locked(ctx, path)
	switch {
	case !lives && (errors.Is(err, errEmpty) || err == nil && (r.Boot != a.who.Boot || a.pathOf(&r.Claimant) != path || r.empty())):
		// The owner died before it claimed, or made the claim before the last boot, which ended all
		// limits and processes, or nothing runs any more that it claimed for.
		return nil, false, os.Remove(path)
	case err == nil || lives:
		return r, lives, err
	case errors.Is(err, trimtab.ErrInvalid) || errors.Is(err, syscall.ELOOP):
		a.logger.Error("the claim file of a dead process is damaged and was set aside: its limits are not counted until its trimtab runs again", "file", path+aside, "err", err)
		_ = os.Remove(path + aside) // removes an earlier one
		return nil, false, os.Rename(path, path+aside)
	}
	return nil, false, err
}

// write writes this claimant's file, unless its content is the same.
func (a *Arbiter) write(ctx context.Context, claims map[string]Claim) error {
	path := a.pathOf(&a.who)
	if _, err := os.Lstat(path); len(claims) == 0 && a.file == nil && errors.Is(err, os.ErrNotExist) {
		a.claimed = claims
		return nil // the claimant only recommends, and needs no file
	}
	if err := a.own(ctx); err != nil {
		return err
	}
	if now, err := readRecord(path); err == nil && same(now.Claims, claims) && now.Claimant == a.who {
		a.claimed = claims
		return nil
	}
	b, err := (&record{a.who, claims}).encode()
	if err == nil {
		err = a.file.SetContent(b)
	}
	if err != nil {
		if _, bad := readRecord(path); errors.Is(bad, errEmpty) {
			_ = a.Close(true) // on a full disk: an empty file would block all raises of the others
		}
		return fmt.Errorf("write claim: %w", err)
	}
	a.claimed = claims
	return nil
}

// own makes sure that this claimant's file exists.
func (a *Arbiter) own(ctx context.Context) error {
	if a.file != nil && a.file.There() {
		return nil
	}
	if a.file != nil { // the file was removed, or moved aside
		a.file.Close()
		a.file = nil
	}
	file, err := hostfs.AcquireFile(ctx, a.pathOf(&a.who), 0)
	if err != nil {
		return fmt.Errorf("own claim: %w", err)
	}
	a.file = file
	return nil
}

func same(x, y map[string]Claim) bool {
	return maps.EqualFunc(x, y, func(a, b Claim) bool {
		return a.Now == b.Now && a.May == b.May && a.Idle == b.Idle && a.Root == b.Root &&
			(a.Capacity == nil) == (b.Capacity == nil) && (a.Capacity == nil || *a.Capacity == *b.Capacity)
	})
}
