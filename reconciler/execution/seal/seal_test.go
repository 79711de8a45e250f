package seal_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	"github.com/flotilla-io/flotilla/reconciler/execution/seal"
)

// TestSeal: a record counts as long as it is what a program with the key wrote.
func TestSeal(t *testing.T) {
	own, other := seal.New([]byte("own")), seal.New([]byte("other"))
	plain := workv1alpha1.AppliedHash{Ordinal: 1, Desired: "new", Observed: "owned", Replicas: ptr.To[int64](2)}
	before := own.Closed([]workv1alpha1.AppliedHash{{Desired: "old", Observed: "owned"}})[0]
	for name, tc := range map[string]struct {
		by     seal.Seal
		record func(is, before workv1alpha1.AppliedHash) workv1alpha1.AppliedHash
		counts bool
	}{
		"as it was written":              {own, func(is, _ workv1alpha1.AppliedHash) workv1alpha1.AppliedHash { return is }, true},
		"of a manifest that has moved":   {own, func(is, _ workv1alpha1.AppliedHash) workv1alpha1.AppliedHash { is.Ordinal = 0; return is }, true},
		"read by whoever needs no proof": {seal.Seal{}, func(is, _ workv1alpha1.AppliedHash) workv1alpha1.AppliedHash { return is }, true},
		"without a seal":                 {own, func(workv1alpha1.AppliedHash, workv1alpha1.AppliedHash) workv1alpha1.AppliedHash { return plain }, false},
		"of another folder":              {other, func(is, _ workv1alpha1.AppliedHash) workv1alpha1.AppliedHash { return is }, false},
		"with other replicas":            {own, func(is, _ workv1alpha1.AppliedHash) workv1alpha1.AppliedHash { is.Replicas = nil; return is }, false},
		"with another manifest":          {own, func(is, _ workv1alpha1.AppliedHash) workv1alpha1.AppliedHash { is.Desired = "newer"; return is }, false},
		"with what another manifest came to once": {own, func(is, before workv1alpha1.AppliedHash) workv1alpha1.AppliedHash {
			is.Observed = before.Observed
			return is
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			record := tc.record(own.Closed([]workv1alpha1.AppliedHash{plain})[0], before)
			want := []workv1alpha1.AppliedHash{}
			if tc.counts {
				is := plain
				is.Ordinal = record.Ordinal
				want = append(want, is)
			}
			if diff := cmp.Diff(want, tc.by.Opened([]workv1alpha1.AppliedHash{record})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLoad: a folder has one key, which only its owner can read; an incomplete one is replaced.
func TestLoad(t *testing.T) {
	folder := t.TempDir()
	load := func() seal.Seal {
		t.Helper()
		s, err := seal.Load(folder)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	closed := load().Closed([]workv1alpha1.AppliedHash{{Desired: "a", Observed: "b"}})
	if len(load().Opened(closed)) != 1 {
		t.Error("what was written before the program started again does not count")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the folder has %v: %v", files, err)
	}
	if is, err := os.Stat(files[0]); err != nil || is.Mode().Perm() != 0o600 {
		t.Errorf("the key is %v: %v", is.Mode(), err)
	}
	if err := os.WriteFile(files[0], []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if len(load().Opened(closed)) != 0 {
		t.Error("a new key proves what the old one proved")
	}
	if _, err := seal.Load(filepath.Join(folder, "missing")); err == nil {
		t.Error("a folder that is not there has a key")
	}
}
