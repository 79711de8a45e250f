package objects

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// About says what a pack has.
type About struct {
	// Commits are those whose trees are in it, the latest first.
	Commits []plumbing.Hash
	// Some means that files of the commits are left out.
	Some bool
	// Whole is how long the pack was when it was fetched in whole, in bytes.
	Whole int64
}

// mostCommits is how many commits are kept in mind.
const mostCommits = 8

// With returns what is to be said once a commit is there as well, with all files or with some.
func (a About) With(commit plumbing.Hash, some bool) About {
	out := About{Commits: []plumbing.Hash{commit}, Some: some, Whole: a.Whole}
	if a.Some && !some {
		return out // the others lack files
	}
	for _, other := range a.Commits {
		if other != commit && len(out.Commits) < mostCommits {
			out.Commits = append(out.Commits, other)
		}
	}
	out.Some = some || a.Some
	return out
}

// fresh is how much may be put upon what was fetched in whole: as much again, or this many bytes if that is more.
const fresh = 8 << 20

// Grown reports whether a pack of this length has so much upon what was fetched in whole that it should be fetched in whole again.
func (a About) Grown(length int64) bool { return length-a.Whole > max(a.Whole, fresh) }

const (
	magic = "flotilla-objects-1"
	all   = "all"
	some  = "some"
	// maxAbout is how long the first line may be.
	maxAbout = 1 << 10
)

// line returns the first line of the file.
func (a About) line() string {
	words := []string{magic, map[bool]string{true: some, false: all}[a.Some], strconv.FormatInt(a.Whole, 10)}
	for _, commit := range a.Commits {
		words = append(words, commit.String())
	}
	return strings.Join(words, " ") + "\n"
}

// errAbout means that a file is not one of ours.
var errAbout = errors.New("no objects are kept in it")

// parse reads the first line of a file.
func parse(line string) (About, error) {
	words := strings.Split(strings.TrimSuffix(line, "\n"), " ")
	if len(words) < 4 || len(words) > 3+mostCommits || words[0] != magic || words[1] != all && words[1] != some {
		return About{}, errAbout
	}
	whole, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil || whole < 0 {
		return About{}, errAbout
	}
	out := About{Some: words[1] == some, Whole: whole}
	for _, word := range words[3:] {
		if !plumbing.IsHash(word) || len(word) != 40 {
			return About{}, errAbout
		}
		out.Commits = append(out.Commits, plumbing.NewHash(word))
	}
	return out, nil
}

// Kept is what there is of one repository.
type Kept struct {
	About
	file  *os.File
	start int64
	size  int64
}

// read reads the beginning of a file.
func read(file *os.File) (*Kept, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read what is kept: %w", err)
	}
	line, err := bufio.NewReaderSize(io.NewSectionReader(file, 0, maxAbout), maxAbout).ReadString('\n')
	if err != nil {
		return nil, errAbout
	}
	about, err := parse(line)
	if err != nil {
		return nil, err
	}
	return &Kept{About: about, file: file, start: int64(len(line)), size: info.Size() - int64(len(line))}, nil
}

// Pack returns the pack. Whether it is one, and what it has, is for the reader to find out.
func (k *Kept) Pack() *io.SectionReader { return io.NewSectionReader(k.file, k.start, k.size) }

// Close closes the file.
func (k *Kept) Close() { _ = k.file.Close() }
