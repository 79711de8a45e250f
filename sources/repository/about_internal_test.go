package repository

import (
	"testing"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/sources/git"
)

func TestWhatACommitAllowsIsRecorded(t *testing.T) {
	if got := about(&git.Tree{Message: "Sell\n\nFlotilla-Allow-Delete: a/b"}, "Sell")[gitopsv1alpha1.CommitAllowDeleteKey]; got != "a/b" {
		t.Errorf("of the commit %q is recorded, want %q", got, "a/b")
	}
}
