// Package worktree commits to repositories that a control plane follows.
//
// In go a Git server and files; out come commits, pushed. The package knows nothing of the control plane but what its
// sources look like.
package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/gitserver"
)

// Namespace is one where Kustomizations act as the control plane.
const Namespace = "flux-system"

const branch = "main"

// Tree is the work tree of a repository.
type Tree struct {
	git       *gitserver.Server
	name, dir string
}

// New makes a repository, and a work tree of it below dir.
func New(ctx context.Context, git *gitserver.Server, name, dir string) (Tree, error) {
	t := Tree{git: git, name: name, dir: filepath.Join(dir, name)}
	if err := git.Create(ctx, name); err != nil {
		return t, err
	}
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return t, fmt.Errorf("make the work tree: %w", err)
	}
	_, err := gitserver.Git(ctx, t.dir, "clone", "--quiet", git.URL(name), ".")
	return t, err
}

// Commit writes files by their paths, and pushes them. It returns the commit.
func (t Tree) Commit(ctx context.Context, files map[string]string) (string, error) {
	for name, content := range files {
		path := filepath.Join(t.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return "", fmt.Errorf("make a folder of the work tree: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return "", fmt.Errorf("write to the work tree: %w", err)
		}
	}
	for _, args := range [][]string{{"add", "."}, {"commit", "--quiet", "-m", "change"}, {"push", "--quiet", "origin", "HEAD:" + branch}} {
		if _, err := gitserver.Git(ctx, t.dir, args...); err != nil {
			return "", err
		}
	}
	return gitserver.Git(ctx, t.dir, "rev-parse", "HEAD")
}

// Source follows the repository, under its name, and looks at it once an hour.
func (t Tree) Source() *sourcev1.GitRepository {
	return &sourcev1.GitRepository{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: t.name},
		Spec:       sourcev1.GitRepositorySpec{URL: t.git.URL(t.name), Interval: metav1.Duration{Duration: time.Hour}, Reference: &sourcev1.GitRepositoryRef{Branch: branch}},
	}
}

// Touch has the source look now.
func (t Tree) Touch(ctx context.Context, hub client.Client) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"%d"}}}`, meta.ReconcileRequestAnnotation, time.Now().UnixNano())
	source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: t.name}}
	if err := hub.Patch(ctx, source, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("touch the source: %w", err)
	}
	return nil
}
