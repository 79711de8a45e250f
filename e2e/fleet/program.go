package fleet

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Program is the path of a built program (make build): in bin/ of the checkout that
// the working directory is in.
func Program(name string) string {
	dir, err := os.Getwd()
	if err != nil {
		return name
	}
	for ; ; dir = filepath.Dir(dir) {
		if path := filepath.Join(dir, "bin", name); isFile(path) || isFile(filepath.Join(dir, "go.mod")) || dir == filepath.Dir(dir) {
			return path
		}
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Run executes a built program and returns what it printed. The error carries all of
// it, and the exit code for those who ask.
func Run(ctx context.Context, stdin []byte, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, Program(name), args...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
