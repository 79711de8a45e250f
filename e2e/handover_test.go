package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// notes are all that a commit's note has said of its Kustomizations, oldest first.
func (r *repository) notes(commit string) []string {
	r.t.Helper()
	var notes []string
	r.note(commit) // fetches
	for _, version := range strings.Fields(r.git("rev-list", "--reverse", "refs/notes/flotilla")) {
		for _, file := range strings.Fields(r.git("ls-tree", "-r", "--name-only", version)) {
			if strings.ReplaceAll(file, "/", "") == commit {
				lines := slices.DeleteFunc(strings.Split(r.git("show", version+":"+file), "\n"), func(line string) bool {
					return !strings.HasPrefix(line, "kustomization/")
				})
				if len(lines) > 0 {
					notes = append(notes, strings.Join(lines, "\n"))
				}
			}
		}
	}
	return slices.Compact(notes)
}

// TestGreenCommitsStayGreen: a commit that has succeeded is reported no more once the next one
// changes what it ran, such as how many.
func TestGreenCommitsStayGreen(t *testing.T) {
	repo := the.repository(t)
	namespace := fleet.NameOf(t)
	app := func(replicas int) string {
		return strings.Replace(fmt.Sprintf(byHandApp, namespace, "nginx:1.29"), "replicas: 1", fmt.Sprintf("replicas: %d", replicas), 1)
	}
	repo.write("app/web.yaml", app(1))
	commits := []string{repo.push("one")}
	the.follow(t, repo.url, "", "wait: false")
	const green = "success 3/3 clusters ready"
	repo.reported(t, commits[0], green)
	for _, replicas := range []int{2, 4, 3, 1} {
		repo.write("app/web.yaml", app(replicas))
		commit := repo.push(fmt.Sprintf("%d replicas", replicas))
		repo.reported(t, commit, green)
		the.applied(t, namespace, commit, time.Minute)
		commits = append(commits, commit)
	}
	for _, commit := range commits {
		notes := repo.notes(commit)
		at := slices.IndexFunc(notes, func(note string) bool { return strings.HasSuffix(note, green) })
		if at < 0 || at != len(notes)-1 {
			t.Errorf("the commit %s is told %q, want nothing after its success", commit[:8], notes)
		}
	}
}
