// Package monorepo measures what a commit to a large repository costs that many Kustomizations follow.
//
// In go a control plane and a Git server; out come how long it takes until all Kustomizations stand at a
// commit that changes one file, and how many writes.
package monorepo

import (
	"context"
	"fmt"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/bench/usage"
	"github.com/flotilla-io/flotilla/bench/worktree"
	"github.com/flotilla-io/flotilla/internal/gitserver"
	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// Fleet is what is measured: a control plane without members.
type Fleet struct {
	Hub    *localfleet.Process
	Client client.WithWatch
	Git    *gitserver.Server
	// Dir is for the work tree.
	Dir string
	// Quiet waits until nothing was written for a time, and returns the revision then.
	Quiet func(ctx context.Context, still time.Duration) (int64, error)
}

const (
	namespace = worktree.Namespace
	name      = "monorepo"
	folders   = 1000
	// unread is how many files beside its two each folder has.
	unread  = 8
	writers = 8
	still   = 2 * time.Second
	longest = 10 * time.Minute
)

// repository is a work tree whose commits the control plane follows.
type repository struct {
	Fleet
	tree worktree.Tree
}

// Measure has a thousand Kustomizations follow a repository of ten thousand files, and changes one.
func Measure(ctx context.Context, f Fleet, r *results.Report) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	tree, err := worktree.New(ctx, f.Git, name, f.Dir)
	if err != nil {
		return err
	}
	repo := repository{Fleet: f, tree: tree}
	commit, err := repo.fill(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := repo.follow(ctx); err != nil {
		return err
	}
	if _, err := repo.applied(ctx, commit, ""); err != nil {
		return err
	}
	r.Note("monorepo", "1,000 Kustomizations, 10,000 files: applied after", time.Since(began).Seconds(), "s")

	for _, change := range []change{
		{"one file changed", "app-0500/config.yaml", config(500, "changed"), "app-0500"},
		{"a file changed that nobody reads", "app-0500/notes-0.txt", "changed", ""},
	} {
		if err := repo.change(ctx, r, change); err != nil {
			return err
		}
	}
	return nil
}

// change is of one file. The Kustomization that reads it is by that name; empty for none.
type change struct{ what, file, content, by string }

// change commits one file, and measures until whoever reads it stands at that commit, and until all Kustomizations do.
func (repo repository) change(ctx context.Context, r *results.Report, c change) error {
	before, err := repo.Quiet(ctx, still)
	if err != nil {
		return err
	}
	spent, err := usage.CPUSeconds(repo.Hub.PID())
	if err != nil {
		return err
	}
	commit, err := repo.tree.Commit(ctx, map[string]string{c.file: c.content})
	if err != nil {
		return err
	}
	began := time.Now()
	if err := repo.tree.Touch(ctx, repo.Client); err != nil {
		return err
	}
	read, err := repo.applied(ctx, commit, c.by)
	if err != nil {
		return err
	}
	took := time.Since(began)
	after, err := repo.Quiet(ctx, still)
	if err != nil {
		return err
	}
	cpu, err := usage.CPUSeconds(repo.Hub.PID())
	if err != nil {
		return err
	}
	if c.by != "" {
		r.AtMost("monorepo", c.what+": applied by who reads it after", read.Sub(began).Seconds(), "s", 2)
	}
	r.AtMost("monorepo", c.what+": all say so after", took.Seconds(), "s", 2)
	r.AtMost("monorepo", c.what+": writes", float64(after-before), "writes", 1010)
	r.Note("monorepo", c.what+": CPU time of the control plane", cpu-spent, "s")
	return nil
}

func config(n int, value string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app-%04d, namespace: %s}\ndata: {is: %s}\n", n, namespace, value)
}

// fill makes the first commit, and returns it.
func (repo repository) fill(ctx context.Context) (string, error) {
	files := map[string]string{}
	for n := range folders {
		folder := fmt.Sprintf("app-%04d/", n)
		files[folder+"kustomization.yaml"] = "resources: [config.yaml]\n"
		files[folder+"config.yaml"] = config(n, "first")
		for i := range unread {
			files[fmt.Sprintf("%snotes-%d.txt", folder, i)] = strings.Repeat("notes ", 20)
		}
	}
	return repo.tree.Commit(ctx, files)
}

// follow makes the source and a Kustomization for each folder.
func (repo repository) follow(ctx context.Context) error {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := repo.Client.Create(ctx, space); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("make the namespace: %w", err)
	}
	if err := repo.Client.Create(ctx, repo.tree.Source()); err != nil {
		return fmt.Errorf("make the source: %w", err)
	}
	var group errgroup.Group
	group.SetLimit(writers)
	for n := range folders {
		group.Go(func() error {
			folder := fmt.Sprintf("app-%04d", n)
			return repo.Client.Create(ctx, &kustomizev1.Kustomization{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: folder},
				Spec: kustomizev1.KustomizationSpec{
					SourceRef: kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.GitRepositoryKind, Name: name},
					Path:      "./" + folder, Prune: true, Interval: metav1.Duration{Duration: 24 * time.Hour},
				},
			})
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("make the Kustomizations: %w", err)
	}
	return nil
}

// applied waits until all Kustomizations stand at a commit, and returns when one of them did.
func (repo repository) applied(ctx context.Context, commit, one string) (at time.Time, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	events, err := repo.Client.Watch(ctx, &kustomizev1.KustomizationList{}, client.InNamespace(namespace))
	if err != nil {
		return at, fmt.Errorf("watch the Kustomizations: %w", err)
	}
	defer events.Stop()
	stand := map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return at, fmt.Errorf("%d of %d Kustomizations stand at %s: %w", len(stand), folders, commit, context.Cause(ctx))
		case event, open := <-events.ResultChan():
			ks, is := event.Object.(*kustomizev1.Kustomization)
			if !open || event.Type == watch.Error {
				return at, fmt.Errorf("the watch of Kustomizations ended: %v", event.Object)
			}
			if is && strings.HasSuffix(ks.Status.LastAppliedRevision, commit) {
				if ks.Name == one && !stand[one] {
					at = time.Now()
				}
				stand[ks.Name] = true
			}
			if len(stand) == folders {
				return at, nil
			}
		}
	}
}
