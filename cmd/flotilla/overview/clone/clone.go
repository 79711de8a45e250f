// Package clone reads, from a user's clone of a fleet's repository, what the control plane does not fetch: the
// commits before the one that it applies.
//
// In go a folder, a commit and a file; out comes the commit that last changed the file. It runs git, which fetches
// nothing, and writes nothing.
package clone

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/lineage"
)

// timeout is how long git may take: the history of one file can be long.
const timeout = 5 * time.Second

var hash = regexp.MustCompile(`^[0-9a-f]{40,64}$`)

// LastChange returns the commit that last changed a file, among a commit and its ancestors, from the clone that
// contains dir. It returns nil if there is no clone, or if that does not have the commit or is shallow.
func LastChange(ctx context.Context, dir, commit, file string) *lineage.Commit {
	if !hash.MatchString(commit) || file == "" || strings.ContainsRune(file, 0) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if out, err := git(ctx, dir, "rev-parse", "--is-shallow-repository"); err != nil || out != "false" {
		return nil
	}
	out, err := git(ctx, dir, "log", "-1", "--no-show-signature", "--format=%H%n%an <%ae>%n%aI%n%s", commit, "--", ":(top,literal)"+file)
	fields := strings.SplitN(out, "\n", 4)
	if err != nil || len(fields) != 4 {
		return nil
	}
	return &lineage.Commit{Revision: "sha1:" + fields[0], Author: fields[1], Date: fields[2], Subject: fields[3]}
}

// git runs git without network access.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, err := cmd.Output()
	return strings.TrimSuffix(string(out), "\n"), err
}
