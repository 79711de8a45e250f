package lfs_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/lfs"
)

const first = "version https://git-lfs.github.com/spec/v1\n"

var oid = strings.Repeat("ab", 32)

// TestParse is about what is a pointer.
func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want lfs.Pointer
		is   bool
	}{
		"a pointer":                {first + "oid sha256:" + oid + "\nsize 12\n", lfs.Pointer{OID: oid, Size: 12}, true},
		"with an extension":        {first + "ext-0-x sha256:" + oid + "\noid sha256:" + oid + "\nsize 12\n", lfs.Pointer{OID: oid, Size: 12}, true},
		"of an empty file":         {first + "oid sha256:" + oid + "\nsize 0\n", lfs.Pointer{OID: oid}, true},
		"a manifest":               {"kind: ConfigMap\n", lfs.Pointer{}, false},
		"of another version":       {"version https://git-lfs.github.com/spec/v2\noid sha256:" + oid + "\nsize 12\n", lfs.Pointer{}, false},
		"without a size":           {first + "oid sha256:" + oid + "\n", lfs.Pointer{OID: oid}, false},
		"with a size below zero":   {first + "oid sha256:" + oid + "\nsize -1\n", lfs.Pointer{OID: oid, Size: -1}, false},
		"with another hash":        {first + "oid md5:" + oid + "\nsize 1\n", lfs.Pointer{Size: 1}, false},
		"with a path for the hash": {first + "oid sha256:../../x\nsize 1\n", lfs.Pointer{OID: "../../x", Size: 1}, false},
		"far too long":             {first + "oid sha256:" + oid + "\nsize 1\n" + strings.Repeat("x", 1024), lfs.Pointer{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, is := lfs.Parse([]byte(tc.text))
			if diff := cmp.Diff(tc.want, got); is != tc.is || is && diff != "" {
				t.Errorf("%t, want %t (-want +got):\n%s", is, tc.is, diff)
			}
		})
	}
}

// FuzzParse: what counts as a pointer has a hash and a size.
func FuzzParse(f *testing.F) {
	f.Add([]byte(first + "oid sha256:" + oid + "\nsize 12\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, is := lfs.Parse(text); is && (len(p.OID) != 64 || p.Size < 0) {
			t.Errorf("%+v", p)
		}
	})
}
