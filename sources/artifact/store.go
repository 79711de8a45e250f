package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Options configure a Store.
type Options struct {
	// BaseURL is the URL of the Handler, without a slash at the end.
	BaseURL string
	// Keep is how many artifacts of each owner are kept. Zero means 2.
	Keep int
	// DiskFull returns why nothing more should be stored, where others need the
	// disk more; it may be nil, and returns nil where there is space.
	DiskFull func() error
	// Limits bound what Open unpacks. Ratio is ignored: it is for foreign
	// archives.
	Limits Limits
}

// defaultKeep is Flux's default.
const defaultKeep = 2

// Store is a directory of artifacts. Only one process may use it at a time, with
// any number of goroutines.
type Store struct {
	root *os.Root
	opts Options

	mu     sync.Mutex
	owners map[string]owner       // by name
	sound  map[string]fs.FileInfo // artifacts that this process has verified
}

// owner is for whom artifacts are kept, and which ones, the newest first.
type owner struct {
	Name    string   `json:"name"`
	Digests []string `json:"digests"`
}

// Stored describes an artifact in the store.
type Stored struct {
	// Digest is "sha256:" and the hex checksum of the archive.
	Digest string
	// Path is that of the file, from the store's root.
	Path string
	// URL is where the Handler serves the file.
	URL string
	// Size is the archive's, in bytes.
	Size int64
}

const (
	blobDir   = "sha256"
	ownerDir  = "owners"
	tempDir   = "tmp"
	blobExt   = ".tar.gz"
	algorithm = "sha256:"
)

// NewStore opens the store in a directory, which it creates if necessary. It
// removes what an earlier process left unfinished.
func NewStore(dir string, opts Options) (*Store, error) {
	if opts.Keep == 0 {
		opts.Keep = defaultKeep
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open artifact store: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open artifact store: %w", err)
	}
	s := &Store{root: root, opts: opts, owners: map[string]owner{}, sound: map[string]fs.FileInfo{}}
	if err := s.prepare(); err != nil {
		_ = root.Close()
		return nil, fmt.Errorf("open artifact store: %w", err)
	}
	return s, nil
}

// Beside returns a folder in the directory of a Store for what is no artifact, and may be lost, and why nothing more should be stored, if
// that is so. The store neither makes it nor looks into it.
func Beside(s *Store, name string) (dir string, full func() error) {
	return filepath.Join(s.root.Name(), name), s.opts.DiskFull
}

// Close closes the directory.
func (s *Store) Close() error { return s.root.Close() }

func (s *Store) prepare() error {
	if err := s.clear(tempDir); err != nil {
		return err
	}
	for _, dir := range []string{blobDir, ownerDir, tempDir} {
		if err := s.root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	entries, err := fs.ReadDir(s.root.FS(), ownerDir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := s.root.ReadFile(path.Join(ownerDir, entry.Name()))
		if err != nil {
			return err
		}
		var o owner
		if err := json.Unmarshal(text, &o); err != nil || ownerPath(o.Name) != path.Join(ownerDir, entry.Name()) {
			// A record that cannot be decoded was broken by the disk: its artifacts
			// are fetched again.
			if err := s.root.Remove(path.Join(ownerDir, entry.Name())); err != nil {
				return err
			}
			continue
		}
		s.owners[o.Name] = o
	}
	return nil
}

// clear empties a folder. The folder itself stays, as it might not be possible to
// create it again on a full disk.
func (s *Store) clear(dir string) error {
	entries, err := fs.ReadDir(s.root.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		err = errors.Join(err, s.root.RemoveAll(path.Join(dir, entry.Name())))
	}
	return err
}

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// blobPath returns the path of the file for a digest.
func blobPath(digest string) (string, error) {
	sum, ok := strings.CutPrefix(digest, algorithm)
	if !ok || !hexDigest.MatchString(sum) {
		return "", fmt.Errorf("digest %q: %w", digest, ErrNotFound)
	}
	return path.Join(blobDir, sum+blobExt), nil
}

func ownerPath(name string) string {
	sum := sha256.Sum256([]byte(name))
	return path.Join(ownerDir, hex.EncodeToString(sum[:])+".json")
}

// Put stores files as the owner's newest artifact. The owner's last artifacts are
// kept, as many as Options.Keep, and those that are in use; others that have no
// owner any more are removed.
func (s *Store) Put(ctx context.Context, ownerName string, files Files, inUse ...string) (Stored, error) {
	return s.PutWithin(ctx, ownerName, files, func(int64) error { return nil }, inUse...)
}

// PutWithin is Put if fits accepts the size of the archive, in bytes; otherwise
// it returns the error of fits.
func (s *Store) PutWithin(ctx context.Context, ownerName string, files Files, fits func(size int64) error, inUse ...string) (Stored, error) {
	digest, packed, err := pack(files)
	if err != nil {
		return Stored{}, err
	}
	if err := fits(int64(len(packed))); err != nil {
		return Stored{}, err
	}
	return newest(ctx, s, ownerName, digest, packed, inUse)
}

// newest stores an archive as the owner's newest artifact.
func newest(ctx context.Context, s *Store, ownerName, digest string, packed []byte, inUse []string) (Stored, error) {
	return s.put(ctx, digest, packed, func() error {
		before := s.owners[ownerName].Digests
		if len(before) > 0 && before[0] == digest {
			return nil
		}
		now := append([]string{digest}, slices.DeleteFunc(slices.Clone(before), func(d string) bool { return d == digest })...)
		stay := slices.Concat(now[:min(len(now), s.opts.Keep)], inUse)
		return s.own(ownerName, slices.DeleteFunc(now, func(d string) bool { return !slices.Contains(stay, d) }))
	})
}

// Restore stores files as an artifact that the owner had before, as its oldest
// one. It returns ErrNotFound if they have another digest.
func (s *Store) Restore(ctx context.Context, ownerName, digest string, files Files) error {
	found, packed, err := pack(files)
	if err != nil {
		return err
	}
	return oldest(ctx, s, ownerName, digest, found, packed)
}

// oldest stores an archive, whose digest is found, as one that the owner had before.
func oldest(ctx context.Context, s *Store, ownerName, digest, found string, packed []byte) error {
	if found != digest {
		return fmt.Errorf("restore artifact %s: what is there is %s: %w", digest, found, ErrNotFound)
	}
	_, err := s.put(ctx, digest, packed, func() error {
		before := s.owners[ownerName].Digests
		if slices.Contains(before, digest) {
			return nil
		}
		return s.own(ownerName, append(slices.Clone(before), digest))
	})
	return err
}

// pack returns the archive of files, and its digest.
func pack(files Files) (digest string, packed []byte, err error) {
	var buffer bytes.Buffer
	if err := files.Pack(&buffer); err != nil {
		return "", nil, err
	}
	return DigestOf(buffer.Bytes()), buffer.Bytes(), nil
}

// put stores an archive if the store does not have it, and then calls own to
// record its owner.
func (s *Store) put(ctx context.Context, digest string, packed []byte, own func() error) (Stored, error) {
	name, err := blobPath(digest)
	if err != nil {
		return Stored{}, err
	}
	if err := ctx.Err(); err != nil {
		return Stored{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.check(name) != nil {
		if s.opts.DiskFull != nil {
			if err := s.opts.DiskFull(); err != nil {
				return Stored{}, fmt.Errorf("store artifact %s: %w", digest, err)
			}
		}
		if err := s.write(name, packed); err != nil {
			return Stored{}, fmt.Errorf("store artifact %s: %w", digest, err)
		}
		if err := s.check(name); err != nil {
			return Stored{}, fmt.Errorf("store artifact %s: %w", digest, err)
		}
	}
	if err := own(); err != nil {
		return Stored{}, fmt.Errorf("store artifact %s: %w", digest, err)
	}
	return Stored{Digest: digest, Path: name, URL: s.URL(name), Size: int64(len(packed))}, nil
}

// URL returns where the Handler serves the file with the given Stored.Path.
func (s *Store) URL(name string) string { return s.opts.BaseURL + "/" + name }

// own records the artifacts of an owner, and removes those that have no owner any
// more.
func (s *Store) own(name string, digests []string) error {
	before := s.owners[name].Digests
	text, err := json.Marshal(owner{Name: name, Digests: digests})
	if err != nil {
		return err
	}
	if err := s.write(ownerPath(name), text); err != nil {
		return err
	}
	s.owners[name] = owner{Name: name, Digests: digests}
	return s.drop(before)
}

// Release removes an owner, and the artifacts that only it had.
func (s *Store) Release(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ok := s.owners[name]
	if !ok {
		return nil
	}
	if err := s.root.Remove(ownerPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("release artifacts of %s: %w", name, err)
	}
	delete(s.owners, name)
	if err := s.drop(before.Digests); err != nil {
		return fmt.Errorf("release artifacts of %s: %w", name, err)
	}
	return nil
}

// drop removes those of the digests that have no owner.
func (s *Store) drop(digests []string) error {
	owned := s.owned()
	for _, digest := range digests {
		name, err := blobPath(digest)
		if err != nil || owned[name] {
			continue
		}
		delete(s.sound, name)
		if err := s.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (s *Store) owned() map[string]bool {
	out := map[string]bool{}
	for _, o := range s.owners {
		for _, digest := range o.Digests {
			if name, err := blobPath(digest); err == nil {
				out[name] = true
			}
		}
	}
	return out
}

// Sweep removes owners that no longer exist, and all artifacts without an owner.
// It returns how many artifacts were removed.
func (s *Store) Sweep(exists func(owner string) bool) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.owners {
		if exists(name) {
			continue
		}
		if err := s.root.Remove(ownerPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("sweep artifacts: %w", err)
		}
		delete(s.owners, name)
	}
	owned := s.owned()
	entries, err := fs.ReadDir(s.root.FS(), blobDir)
	if err != nil {
		return 0, fmt.Errorf("sweep artifacts: %w", err)
	}
	removed := 0
	for _, entry := range entries {
		name := path.Join(blobDir, entry.Name())
		if owned[name] {
			continue
		}
		delete(s.sound, name)
		if err := s.root.Remove(name); err != nil {
			return removed, fmt.Errorf("sweep artifacts: %w", err)
		}
		removed++
	}
	return removed, nil
}

// Has reports whether the artifact exists and is intact. Its content is read once
// per process; a file that has not changed since is not verified again.
func (s *Store) Has(digest string) bool {
	name, err := blobPath(digest)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.check(name) == nil
}

// Owner returns the name of the owner for what a source fetched. Owns checks by
// it that an artifact belongs to the source: anybody may have written what a
// status has about it.
func Owner(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// Owns reports whether the artifact is one of those that are kept for the owner.
func (s *Store) Owns(name, digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.owners[name].Digests, digest)
}

// Open returns an artifact's files. Errors: ErrNotFound; ErrCorrupt, after which
// the artifact is removed and has to be stored again; ErrTooLarge.
func (s *Store) Open(_ context.Context, digest string) (Files, error) {
	name, err := blobPath(digest)
	if err != nil {
		return nil, err
	}
	packed, err := s.root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", digest, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open artifact: %w", err)
	}
	if DigestOf(packed) != digest {
		s.mu.Lock()
		defer s.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", digest, s.discard(name))
	}
	// The digest shows that this is what was put here, whatever its ratio.
	limits := s.opts.Limits
	limits.Ratio = math.MaxInt64
	files, err := Extract(bytes.NewReader(packed), limits)
	if err != nil {
		return nil, fmt.Errorf("open artifact %s: %w", digest, err)
	}
	return files, nil
}

// check reads an artifact and compares it with its name, unless that was done
// already.
func (s *Store) check(name string) error {
	info, err := s.root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	if known, ok := s.sound[name]; ok && known.Size() == info.Size() && known.ModTime().Equal(info.ModTime()) {
		return nil
	}
	f, err := s.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return err
	}
	if path.Base(name) != hex.EncodeToString(hash.Sum(nil))+blobExt {
		return s.discard(name)
	}
	s.sound[name] = info
	return nil
}

// discard removes a broken artifact, so that it is stored again, and returns
// ErrCorrupt.
func (s *Store) discard(name string) error {
	delete(s.sound, name)
	return errors.Join(ErrCorrupt, s.root.Remove(name))
}

// write replaces a file atomically: after a crash there is the old file, the new
// one, or none, but never a part of one.
func (s *Store) write(name string, content []byte) error {
	temp := path.Join(tempDir, path.Base(name))
	f, err := s.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, s.root.Remove(temp))
	}
	if err := s.root.Rename(temp, name); err != nil {
		return errors.Join(err, s.root.Remove(temp))
	}
	return syncDir(s.root, path.Dir(name))
}

func syncDir(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
