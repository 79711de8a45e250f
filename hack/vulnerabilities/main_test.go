package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The scanner's words about a program with two vulnerabilities that are linked and
// one that is only required (testdata/scan.json).
func TestJudge(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "scan.json"))
	if err != nil {
		t.Fatal(err)
	}
	const (
		versions = "GO-0000-0001: Versions compare the wrong way round\n" +
			"  golang.org/x/mod v0.42.0, there is no version without it; in one, two\n" +
			"  golang.org/x/mod/semver.Compare\n  golang.org/x/mod/semver.IsValid\n"
		forever = "GO-0000-0002: JSON is read for ever\n" +
			"  stdlib v1.26.8, fixed in v99.0.0; in one, two\n" +
			"  encoding/json.Decoder.Decode\n  encoding/json.Unmarshal\n"
	)
	cases := map[string]struct {
		exceptions string
		want       string
	}{
		"without exceptions all that is linked counts": {
			want: versions + forever + "known vulnerabilities: 2, excepted: 0\n",
		},
		"an exception counts on its last day": {
			exceptions: `{id: GO-0000-0001, reason: we sort nothing, until: "2026-11-23"}`,
			want:       forever + "GO-0000-0001 is excepted until 2026-11-23: we sort nothing\nknown vulnerabilities: 1, excepted: 1\n",
		},
		"and not on the day after": {
			exceptions: `{id: GO-0000-0001, reason: we sort nothing, until: "2026-11-22"}`,
			want:       versions + "  excepted until 2026-11-22: we sort nothing\n" + forever + "known vulnerabilities: 2, excepted: 0\n",
		},
		"an exception that nothing needs is told": {
			exceptions: `{id: GO-0000-0001, reason: we sort nothing, until: "2027-01-01"}, {id: GO-0000-0002, reason: short texts, until: "2027-01-01"}, ` +
				`{id: GO-0000-0003, reason: not linked, until: "2027-01-01"}`,
			want: "GO-0000-0001 is excepted until 2027-01-01: we sort nothing\nGO-0000-0002 is excepted until 2027-01-01: short texts\n" +
				"GO-0000-0003 is excepted, and nothing has it: take the exception out\nknown vulnerabilities: 0, excepted: 2\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			list, err := parseExceptions([]byte("exceptions: [" + tc.exceptions + "]"))
			if err != nil {
				t.Fatal(err)
			}
			var all []vulnerability
			for _, program := range []string{"two", "one"} {
				found, err := parse(bytes.NewReader(content), program)
				if err != nil {
					t.Fatal(err)
				}
				all = merge(all, found)
			}
			got := judge(all, list, time.Date(2026, 11, 23, 23, 59, 0, 0, time.UTC)).String()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExceptionsThatSayTooLittle(t *testing.T) {
	for name, tc := range map[string]struct{ list, says string }{
		"no reason":          {`{id: GO-1, reason: " ", until: "2027-01-01"}`, `exception 1 ("GO-1") needs an id and a reason`},
		"no id":              {`{reason: x, until: "2027-01-01"}`, `exception 1 ("") needs an id and a reason`},
		"no day":             {`{id: GO-1, reason: x}`, "until when GO-1 is excepted"},
		"no such day":        {`{id: GO-1, reason: x, until: "2027-02-30"}`, "until when GO-1 is excepted"},
		"twice":              {`{id: GO-1, reason: x, until: "2027-01-01"}, {id: GO-1, reason: y, until: "2027-01-01"}`, "GO-1 is there twice"},
		"a field unheard of": {`{id: GO-1, reason: x, until: "2027-01-01", for: ever}`, "for"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseExceptions([]byte("exceptions: [" + tc.list + "]"))
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("= %v, want %q", err, tc.says)
			}
		})
	}
}

func TestTheScannersWordsAreCutOff(t *testing.T) {
	if _, err := parse(strings.NewReader(`{"finding": {"osv": "GO-1"`), "one"); err == nil {
		t.Error("half of what it says was taken for all")
	}
}

// The list that the project goes by can be read.
func TestOwnExceptions(t *testing.T) {
	content, err := os.ReadFile("exceptions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseExceptions(content); err != nil {
		t.Error(err)
	}
}

// TestScanner has the real scanner look at itself, with a database that takes two of
// its functions for vulnerable.
func TestScanner(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the scanner")
	}
	dir := t.TempDir()
	scanner := filepath.Join(dir, "govulncheck")
	build := exec.CommandContext(t.Context(), "go", "build", "-modfile=../vuln.mod", "-o", scanner, "golang.org/x/vuln/cmd/govulncheck")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	db, err := filepath.Abs(filepath.Join("testdata", "db"))
	if err != nil {
		t.Fatal(err)
	}
	exceptions := filepath.Join(dir, "exceptions.yaml")
	except := func(ids ...string) {
		t.Helper()
		text := "exceptions:\n"
		for _, id := range ids {
			text += "- {id: " + id + ", reason: a test, until: \"2026-12-31\"}\n"
		}
		if err := os.WriteFile(exceptions, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gomod := filepath.Join(dir, "go.mod")
	if err := os.WriteFile(gomod, []byte("module x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options{scanner: scanner, db: "file://" + db, exceptions: exceptions, gomod: gomod, today: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)}
	scan := func() (string, error) {
		var out strings.Builder
		o.out = &out
		err := run(t.Context(), o, []string{scanner})
		return out.String(), err
	}

	except("GO-0000-0001")
	reported, err := scan()
	if err == nil || !strings.Contains(reported, "GO-0000-0002: JSON is read for ever\n") || !strings.HasSuffix(reported, "known vulnerabilities: 1, excepted: 1\n") {
		t.Errorf("one of two is excepted: %v\n%s", err, reported)
	}
	except("GO-0000-0001", "GO-0000-0002")
	if reported, err := scan(); err != nil || !strings.HasSuffix(reported, "known vulnerabilities: 0, excepted: 2\n") {
		t.Errorf("all are excepted: %v\n%s", err, reported)
	}
	except("GO-0000-0002")
	forked := "module x\nrequire golang.org/x/mod v0.42.0\nreplace golang.org/x/mod => ./mod\n"
	if err := os.WriteFile(gomod, []byte(forked), 0o600); err != nil {
		t.Fatal(err)
	}
	if reported, err := scan(); err == nil || !strings.Contains(reported, "no version without it; in ./mod, govulncheck\n") {
		t.Errorf("a fork of what has one: %v\n%s", err, reported)
	}
	o.db = "file://" + dir + "/nowhere"
	if _, err := scan(); err == nil || errors.Is(err, errAway) {
		t.Errorf("a database that is none: %v", err)
	}
	o.db = ""
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	if _, err := scan(); !errors.Is(err, errAway) {
		t.Errorf("no way to the database: %v", err)
	}
}

func TestForks(t *testing.T) {
	const text = "module x\nrequire (\n\ta.example/a v1.2.3\n\tb.example/b v1.0.0\n)\n"
	for name, tc := range map[string]struct {
		replaces string
		want     []fork
		says     string
	}{
		"none":                       {},
		"a folder":                   {replaces: "replace a.example/a => ./third_party/a", want: []fork{{"a.example/a", "v1.2.3", "./third_party/a"}}},
		"a folder for one version":   {replaces: "replace a.example/a v1.2.0 => ./a", want: []fork{{"a.example/a", "v1.2.0", "./a"}}},
		"another module is no fork":  {replaces: "replace b.example/b => c.example/c v1.0.0"},
		"of what nobody requires":    {replaces: "replace d.example/d => ./d", says: "no version of it is required"},
		"a file that cannot be read": {replaces: "replace", says: "go.mod:6"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := forksOf([]byte(text + tc.replaces + "\n"))
			if (err != nil) != (tc.says != "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("error = %v, want %q", err, tc.says)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(fork{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
