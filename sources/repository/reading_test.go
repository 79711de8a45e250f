package repository_test

import (
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/sources/fetching"
	"github.com/flotilla-io/flotilla/sources/git"
	"github.com/flotilla-io/flotilla/sources/repository"
)

// TestReader reads a commit that is on no branch that the source follows, and leaves no artifact behind.
func TestReader(t *testing.T) {
	b := newBench(t, repository.Options{})
	main := b.commit("main", map[string]string{"app/a.yaml": "1\n", "docs/x.md": "no"})
	b.run("checkout", "--quiet", "-b", "next")
	next := b.commit("next", map[string]string{"app/a.yaml": "2\n"})
	b.run("push", "--quiet", "origin", "HEAD:refs/pull/7/head")
	b.create(func(object *sourcev1.GitRepository) { object.Spec.SparseCheckout = []string{"app"} })
	opts := repository.Options{Clock: b.clock, Git: git.Options{Egress: reach, TempDir: t.TempDir()}}
	opened, err := repository.NewReader(b.hub, b.store, opts).Open(t.Context(), b.object())
	if err != nil {
		t.Fatal(err)
	}
	head, err := opened.Resolve(t.Context(), git.Ref{Name: "refs/pull/7/head"})
	if err != nil || head.Hash != next {
		t.Fatalf("%s, %v; want %s", head.Hash, err, next)
	}
	onto, err := opened.Resolve(t.Context(), git.Ref{Branch: "main"})
	if err != nil {
		t.Fatal(err)
	}
	if base, err := opened.MergeBase(t.Context(), onto, head); base != main || err != nil {
		t.Errorf("merge base %s, %v; want %s", base, err, main)
	}
	for of, want := range map[string]string{next: "2\n", main: "1\n"} {
		files, err := opened.Files(t.Context(), git.Commit{Hash: of})
		got := map[string]string{}
		for name, file := range files {
			got[name] = string(file.Data)
		}
		if diff := cmp.Diff(map[string]string{"app/a.yaml": want}, got); diff != "" || err != nil {
			t.Errorf("%v, files (-want +got):\n%s", err, diff)
		}
	}
	if b.object().Status.Artifact != nil || b.writes != 0 {
		t.Errorf("it wrote: %+v", b.object().Status)
	}
}

// TestReadersFollowNothing: what a commit could name elsewhere is not followed.
func TestReadersFollowNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*sourcev1.GitRepository)
		class  loop.Class
		reason string
	}{
		"submodules": {func(object *sourcev1.GitRepository) { object.Spec.RecurseSubmodules = true }, loop.ClassStalled, fetching.ReasonUnsupported},
		"Git LFS": {func(object *sourcev1.GitRepository) {
			object.Annotations = map[string]string{gitopsv1alpha1.LFSAnnotation: "true"}
		}, loop.ClassStalled, fetching.ReasonUnsupported},
		"a Secret that is no more": {func(object *sourcev1.GitRepository) { object.Spec.SecretRef = &meta.LocalObjectReference{Name: "gone"} }, loop.ClassWaiting, sourcev1.AuthenticationFailedReason},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, repository.Options{})
			b.create(tc.change)
			_, err := repository.NewReader(b.hub, b.store, repository.Options{Clock: b.clock, Git: git.Options{Egress: reach}}).Open(t.Context(), b.object())
			if e := loop.As(err, ""); e == nil || e.Class != tc.class || e.Reason != tc.reason {
				t.Errorf("error %+v, want class %d, reason %s", e, tc.class, tc.reason)
			}
		})
	}
}
