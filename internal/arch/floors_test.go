package arch_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/flotilla-io/flotilla"

// floors names, for each room, the rooms it may reach. A room reaches itself.
// The longest prefix decides, so that a package may stand on another floor
// than the room around it.
var floors = map[string][]string{
	"api":           {},
	"policies":      {"api"},
	"sources/build": {"api", "policies"},
	"internal":      {"api", "policies"},
	"sources":       {"api", "policies", "internal", "sources/build"},
	"controlplane":  {"api", "policies", "internal", "sources", "sources/build"},
	"reconciler":    {"api", "policies", "internal", "sources", "sources/build"},
	"agent":         {"api", "policies", "internal", "sources", "sources/build"},
	"examples":      {},
	// A program of a user's: it may reach what flotillad does.
	"examples/plugin": {"api", "policies", "internal", "sources", "sources/build", "controlplane", "reconciler"},
	// A server of a user's; its test asks as the control plane does.
	"examples/interpreter": {"api", "policies", "internal"},
	"hack":                 {"api"},
	"e2e":                  {"api", "internal"},
	"bench":                {"api", "policies", "internal", "reconciler", "sources", "sources/build"},
}

// barred names what a room must not reach by any path, with the reason.
var barred = map[string]map[string]string{
	"api": {
		"k8s.io/client-go":               "types need no client",
		"sigs.k8s.io/controller-runtime": "types need no client",
	},
	"policies": {
		"k8s.io/client-go":               "decisions take values, not clients",
		"sigs.k8s.io/controller-runtime": "decisions take values, not clients",
	},
	"sources/build": {
		"k8s.io/client-go":               "a build takes files, not clients",
		"sigs.k8s.io/controller-runtime": "a build takes files, not clients",
	},
	"agent": {
		"k8s.io/kubernetes":         "keeps the edge program small",
		"go.etcd.io/etcd/server":    "the edge stores nothing in etcd",
		"github.com/go-git/go-git/": "the edge reads no Git",
	},
	"cmd/flotilla": {
		"k8s.io/kubernetes":      "the command line is no server",
		"go.etcd.io/etcd/server": "the command line is no server",
	},
	"cmd/flotilla-agent": {
		"k8s.io/kubernetes":         "keeps the edge program small",
		"go.etcd.io/etcd/server":    "the edge stores nothing in etcd",
		"github.com/go-git/go-git/": "the edge reads no Git",
	},
}

// tolerated are packages below a barred one that may be reached all the same.
var tolerated = map[string]string{
	"sigs.k8s.io/controller-runtime/pkg/scheme":           "Flux's published types register themselves with it; it brings no client",
	"k8s.io/client-go/util/jsonpath":                      "paths in the form of kubectl, of values",
	"k8s.io/client-go/third_party/forked/golang/template": "what those are made of",
}

// barredDirectly names packages that a room's own files must not import, where
// libraries below them do.
var barredDirectly = map[string]map[string]string{
	"policies":      {"net/http": "no I/O in a decision", "os": "no I/O in a decision", "os/exec": "no I/O in a decision"},
	"sources/build": {"net/http": "no I/O in a build", "os": "no I/O in a build", "os/exec": "no I/O in a build"},
	"sources/git":   {"os/exec": "a repository is read in process"},
}

// kubernetesServer are the only packages that may import k8s.io/kubernetes.
var kubernetesServer = []string{"controlplane/apiserver", "controlplane/housekeeping"}

type goPackage struct {
	ImportPath string
	Dir        string
	Doc        string
	Name       string
	GoFiles    []string
	Imports    []string
	Deps       []string

	TestImports, XTestImports []string
}

func TestFloors(t *testing.T) {
	for _, p := range packages(t) {
		room := roomOf(p.ImportPath)
		for _, dep := range p.Deps {
			checkFloor(t, p, room, dep)
			checkBarred(t, p, dep)
		}
	}
}

func checkFloor(t *testing.T, p goPackage, room, dep string) {
	t.Helper()
	below := roomOf(dep)
	allowed, known := floors[room]
	if !known || below == "" || below == room || slices.Contains(allowed, below) {
		return
	}
	t.Errorf("%s reaches %s: %s may only reach %v", p.ImportPath, dep, room, allowed)
}

func checkBarred(t *testing.T, p goPackage, dep string) {
	t.Helper()
	if _, allowed := tolerated[dep]; allowed {
		return
	}
	for place, bans := range barred {
		if !within(p.ImportPath, place) {
			continue
		}
		for bad, why := range bans {
			if dep == strings.TrimSuffix(bad, "/") || strings.HasPrefix(dep, strings.TrimSuffix(bad, "/")+"/") {
				t.Errorf("%s reaches %s: %s", p.ImportPath, dep, why)
			}
		}
	}
}

func TestDirectImports(t *testing.T) {
	for _, p := range packages(t) {
		for place, bans := range barredDirectly {
			for bad, why := range bans {
				if within(p.ImportPath, place) && slices.Contains(p.Imports, bad) {
					t.Errorf("%s imports %s: %s", p.ImportPath, bad, why)
				}
			}
		}
		for _, dep := range p.Imports {
			if strings.HasPrefix(dep, "k8s.io/kubernetes/") && !slices.Contains(kubernetesServer, strings.TrimPrefix(p.ImportPath, module+"/")) {
				t.Errorf("%s imports %s: only %v may", p.ImportPath, dep, kubernetesServer)
			}
		}
	}
}

// roomOf returns the floor that a package stands on, "" for one of another
// module and for the programs, which may reach everything.
func roomOf(path string) string {
	best := ""
	for room := range floors {
		if within(path, room) && len(room) > len(best) {
			best = room
		}
	}
	return best
}

func within(path, place string) bool {
	root := module + "/" + place
	return path == root || strings.HasPrefix(path, root+"/")
}

// packages lists the module's packages with all that they reach.
func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,Doc,Name,GoFiles,Imports,Deps,TestImports,XTestImports", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var list []goPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatalf("read what go list prints: %v", err)
		}
		list = append(list, p)
	}
}
