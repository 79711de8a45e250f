package comment_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/comment"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

var update = flag.Bool("update", false, "write the golden files anew")

const commit = "9f2c4d1e0b7a6c5d4e3f2a1b0c9d8e7f6a5b4c3d"

// many are clusters in one state.
func many(n int, state rollup.State, reason string) (out []rollup.Place) {
	for i := range n {
		out = append(out, rollup.Place{Cluster: fmt.Sprintf("eu-%03d", i), State: state, Reason: reason})
	}
	return out
}

func reportOf(shares ...comment.Share) comment.Report {
	var plain []rollup.Share
	for _, s := range shares {
		plain = append(plain, s.Share)
	}
	return comment.Report{Context: "flotilla/fleet", Commit: commit, Sum: rollup.Source(plain), Shares: shares}
}

func share(name, state, description string, places ...rollup.Place) comment.Share {
	s := comment.Share{Share: rollup.Share{Name: name, State: state, Description: description, Total: len(places)}, Places: places}
	for _, p := range places {
		if p.State == rollup.Healthy {
			s.Ready++
		}
	}
	return s
}

func TestOf(t *testing.T) {
	unchanged := share("db", rollup.StateSuccess, "3/3 clusters ready", many(3, rollup.Healthy, "")...)
	unchanged.Unchanged = true
	ill := share("queue", rollup.StateFailure, "2/3 clusters ready: eu-1 failed on StatefulSet shop/queue: no room", rollup.Place{Cluster: "eu-1", State: rollup.Failed, Reason: "StatefulSet shop/queue: no room"})
	ill.Unchanged = true
	awaited := share("late", "", "")
	awaited.Awaited = true
	web := share("web", rollup.StatePending, "1/3 clusters ready: us-1 waits for Deployment shop/web 2/5",
		rollup.Place{Cluster: "us-1", State: rollup.Progressing, Reason: "waits for Deployment shop/web 2/5"}, rollup.Place{Cluster: "asia-1", State: rollup.Unknown, Reason: "unreachable for 3m"}, rollup.Place{Cluster: "eu-1"})
	linked := reportOf(share("web", rollup.StateSuccess, "30/30 clusters ready", many(30, rollup.Healthy, "")...))
	linked.Link = "https://fleet.example.com/flux-system"
	for name, r := range map[string]comment.Report{
		"rolls-out": reportOf(unchanged, ill, awaited, web),
		"succeeded": linked,
		"keeps": reportOf(share("web", rollup.StateSuccess, "2/2 clusters ready; claim shop/data stays in west: flotilla prune --cluster west removes it",
			rollup.Place{Cluster: "eu-1"}, rollup.Place{Cluster: "eu-2"}, rollup.Place{Cluster: "west", Reason: "claim shop/data stays, with its data"}),
			share("db", rollup.StateSuccess, "1/1 clusters ready", rollup.Place{Cluster: "west"})),
		"refused": reportOf(share("web", rollup.StateFailure, "BuildFailed: web/deployment.yaml:12: mapping values are not allowed")),
		"hostile": reportOf(share("web", rollup.StateFailure, "a `code` <img src=x> | @everybody\nand ![x](https://evil.example.com) \\",
			rollup.Place{Cluster: "eu-1", State: rollup.Failed, Reason: "`|` <!-- flotilla --> #12 \\"})),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, comment.Of(r)) })
	}
	golden(t, "superseded", comment.Ended("flotilla/fleet", commit, "superseded by 1a2b3c4d"))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".md")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLength: however much there is to say, a forge takes it, and it says how much is missing.
func TestLength(t *testing.T) {
	long := strings.Repeat("é", 1000)
	var shares []comment.Share
	for i := range 2000 {
		shares = append(shares, share(fmt.Sprintf("app-%04d", i), rollup.StateFailure, long, many(3, rollup.Failed, long)...))
	}
	rand.Shuffle(len(shares), func(i, j int) { shares[i], shares[j] = shares[j], shares[i] })
	for says, r := range map[string]comment.Report{
		"| 1952 more | | |": reportOf(shares...),
		"| 932 more clusters | | |\n| `us` | ✅ runs it | |": reportOf(
			share("web", rollup.StateFailure, long, many(1000, rollup.Failed, strings.Repeat("é", 200))...), share("db", rollup.StateSuccess, "", rollup.Place{Cluster: "us"})),
	} {
		got := comment.Of(r)
		if len(got) > comment.MaxBytes || !strings.Contains(got, says) {
			t.Errorf("%d bytes, want at most %d, and %q:\n%s", len(got), comment.MaxBytes, says, got)
		}
	}
}

// FuzzOf has foreign words stand wherever they may: each stays in its code, and no line begins or ends for them.
func FuzzOf(f *testing.F) {
	for _, seed := range []string{"", "`", "a|b", "\\|", "\\", "x\n\n# y", "<!-- -->", "@all", "‮", "\xff`"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, word string) {
		plain := comment.Of(reportOf(share("web", rollup.StateFailure, "x", rollup.Place{Cluster: "eu", State: rollup.Failed, Reason: "x"})))
		got := comment.Of(reportOf(share("web", rollup.StateFailure, "x"+word+"x", rollup.Place{Cluster: "eu", State: rollup.Failed, Reason: "x" + word + "x"})))
		if shape(plain) != shape(got) {
			t.Errorf("%q gets out of its place:\n%s", word, got)
		}
	})
}

// shape is what a comment is without the words in code. A bar ends a cell, in code too.
func shape(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		code := false
		for _, r := range line {
			if r == '`' {
				code = !code
			}
			if !code || r == '|' && strings.HasPrefix(line, "|") {
				out.WriteRune(r)
			}
		}
	}
	return out.String()
}

// TestWhoWaitsForWhatDoesNotExist has a line, also where the commit changes nothing of it.
func TestWhoWaitsForWhatDoesNotExist(t *testing.T) {
	waits := share("web", rollup.StateSuccess, "3/3 clusters ready")
	waits.Unchanged, waits.Waits = true, "base"
	for meant, want := range map[string]string{
		"":      "| `web` | ⏳ waits for `base`, which does not exist |",
		"bases": "| `web` | ⏳ waits for `base`, which does not exist (did you mean `bases`?) |",
	} {
		waits.Meant = meant
		if got := comment.Of(reportOf(waits)); !strings.Contains(got, want) {
			t.Errorf("the comment is\n%s\nwant it to hold %s", got, want)
		}
	}
}
