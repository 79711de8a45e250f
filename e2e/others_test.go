package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// The programs of others that tests work with, each built once.
var (
	fluxProgram  = sync.OnceValues(buildFlux)
	giteaProgram = sync.OnceValues(buildForge)

	bucketsProgram = sync.OnceValues(buildBuckets)
)

// built is the path of such a program.
func built(t *testing.T, program func() (string, error)) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// buildAhead builds them while tests wait for clusters: that takes minutes on an empty
// cache. Who asks for some tests only has nothing built that they do not need.
func buildAhead() {
	if flag.Lookup("test.run").Value.String() != "" {
		return
	}
	go func() {
		_, _ = fluxProgram() // whoever needs it is told what is wrong
		_, _ = giteaProgram()
		_, _ = bucketsProgram()
	}()
}

// inModule runs the go command in the folder of a module, when nothing else wants to
// compute, and returns what it printed.
func inModule(dir string, args ...string) (string, error) { return inModuleWith(nil, dir, args...) }

// inModuleWith does it with more in its environment.
func inModuleWith(env []string, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "nice", append([]string{"-n", "10", "go"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("go %s in %s: %w\n%s", args[0], dir, err, failed.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
