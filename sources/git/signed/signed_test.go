package signed

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/google/go-cmp/cmp"
)

const (
	treeLine   = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"
	otherTree  = "tree 1111111111111111111111111111111111111111\n"
	people     = "author A <a@b.c> 1700000000 +0000\ncommitter A <a@b.c> 1700000000 +0000\n"
	parents    = "parent 2222222222222222222222222222222222222222\nparent 3333333333333333333333333333333333333333\n"
	gpgsig     = "gpgsig -----BEGIN SSH SIGNATURE-----\n abc\n -----END SSH SIGNATURE-----\n"
	gpgsigText = "-----BEGIN SSH SIGNATURE-----\nabc\n-----END SSH SIGNATURE-----\n"
)

// TestCommit is about what of a commit is signed.
func TestCommit(t *testing.T) {
	const mergetag = "mergetag object 1\n type commit\n gpgsig no header\n -----BEGIN PGP SIGNATURE-----\n"
	for name, tc := range map[string]struct {
		raw, text, signature string
		err                  bool
	}{
		"not signed":                     {treeLine + people + "\nsubject\n", treeLine + people + "\nsubject\n", "", false},
		"signed":                         {treeLine + people + gpgsig + "\nsubject\n", treeLine + people + "\nsubject\n", gpgsigText, false},
		"a header after it":              {treeLine + people + gpgsig + "encoding x\n\nsubject\n", treeLine + people + "encoding x\n\nsubject\n", gpgsigText, false},
		"one for SHA-256 beside it":      {treeLine + people + strings.Replace(gpgsig, "gpgsig", "gpgsig-sha256", 1) + gpgsig + "\nx\n", treeLine + people + "\nx\n", gpgsigText, false},
		"a signed tag was merged":        {treeLine + people + mergetag + gpgsig + "\nx", treeLine + people + mergetag + "\nx", gpgsigText, false},
		"a signature in the message":     {treeLine + people + "\nx\n\n" + gpgsig, treeLine + people + "\nx\n\n" + gpgsig, "", false},
		"without a message":              {treeLine + people + gpgsig + "\n", treeLine + people + "\n", gpgsigText, false},
		"two signatures":                 {treeLine + people + gpgsig + gpgsig + "\nx", "", "", true},
		"two trees":                      {otherTree + treeLine + people + gpgsig + "\nx", "", "", true},
		"a tree after the signature":     {treeLine + people + gpgsig + otherTree + "\nx", "", "", true},
		"no tree":                        {people + gpgsig + "\nx", "", "", true},
		"a byte that ends text":          {treeLine + people + "x \x00\n" + gpgsig + "\nx", "", "", true},
		"a line that belongs to nothing": {" x\n" + treeLine + people + gpgsig + "\nx", "", "", true},
		"a header before the author":     {treeLine + "gpgsig-sha256 x\n y\n" + people + gpgsig + "\nx", "", "", true},
		"with parents":                   {treeLine + parents + people + gpgsig + "\nx", treeLine + parents + people + "\nx", gpgsigText, false},
		"a parent after the author":      {treeLine + people + parents + gpgsig + "\nx", "", "", true},
		"without an author":              {treeLine + gpgsig + "\nx", "", "", true},
		"the author twice":               {treeLine + people + people + gpgsig + "\nx", "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Commit([]byte(tc.raw))
			if tc.err {
				if !errors.Is(err, ErrMalformed) {
					t.Errorf("%v, %q", err, got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.text, tc.signature}, []string{string(got.Text), got.Signature}); diff != "" {
				t.Errorf("text and signature (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTarget is about what a tag points at.
func TestTarget(t *testing.T) {
	const hash = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	for name, tc := range map[string]struct {
		raw  string
		want plumbing.ObjectType
	}{
		"a commit":             {"object " + hash + "\ntype commit\ntag v1\ntagger x\n\nobject y\n", plumbing.CommitObject},
		"a tag":                {"object " + hash + "\ntype tag\ntag v1\n\n", plumbing.TagObject},
		"two objects":          {"object " + hash + "\ntype commit\nobject " + hash + "\n\n", 0},
		"the type first":       {"type commit\nobject " + hash + "\n\n", 0},
		"no hash":              {"object main\ntype commit\n\n", 0},
		"nothing":              {"", 0},
		"a type that is none":  {"object " + hash + "\ntype tea\n\n", 0},
		"what the message has": {"\n\nobject " + hash + "\ntype commit\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, got, err := Target([]byte(tc.raw))
			if got != tc.want || (err == nil) != (tc.want != 0) {
				t.Errorf("%v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

// TestTag is about what of a tag is signed: all before the last signature in it, as Git has it.
func TestTag(t *testing.T) {
	const head, pgp, ssh = "object 1\ntype commit\ntag v1\n\nmessage\n", "-----BEGIN PGP SIGNATURE-----\nabc\n", "-----BEGIN SSH SIGNATURE-----\nabc\n"
	if got := Tag([]byte(head + ssh)).Name; got != "v1" {
		t.Errorf("its name is %q", got)
	}
	if got := Tag([]byte("object 1\ntag v1\ntag v2\n\n" + ssh)).Name; got != "" {
		t.Errorf("of two names it has %q", got)
	}
	for name, tc := range map[string]struct{ raw, text, signature string }{
		"not signed":                {head, head, ""},
		"signed":                    {head + ssh, head, ssh},
		"signed twice":              {head + pgp + ssh, head + pgp, ssh},
		"signed twice, in reverse":  {head + ssh + pgp, head + ssh, pgp},
		"in the middle of a line":   {head + "x " + ssh, head + "x " + ssh, ""},
		"nothing but a signature":   {ssh, ssh, ""},
		"with another kind's begin": {head + "-----BEGIN TEA-----\n", head + "-----BEGIN TEA-----\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Tag([]byte(tc.raw))
			if diff := cmp.Diff([]string{tc.text, tc.signature}, []string{string(got.Text), got.Signature}); diff != "" {
				t.Errorf("text and signature (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzCommit checks that what is signed says the same of files, history and message as the commit that is read.
func FuzzCommit(f *testing.F) {
	f.Add([]byte(treeLine + people + gpgsig + "\nsubject\n"))
	f.Add([]byte(treeLine + people + "mergetag object 1\n type commit\n" + gpgsig + "encoding x\n\nsubject\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		split, err := Commit(raw)
		if err != nil || split.Signature == "" {
			return
		}
		read := func(content []byte) (*object.Commit, error) {
			encoded := &plumbing.MemoryObject{}
			encoded.SetType(plumbing.CommitObject)
			if _, err := encoded.Write(content); err != nil {
				return nil, err
			}
			var c object.Commit
			return &c, c.Decode(encoded)
		}
		whole, err := read(raw)
		if err != nil {
			return
		}
		signed, err := read(split.Text)
		if err != nil {
			t.Fatalf("what is signed cannot be read: %v", err)
		}
		if whole.TreeHash != signed.TreeHash || !cmp.Equal(whole.ParentHashes, signed.ParentHashes) || whole.Message != signed.Message {
			t.Errorf("read as %v\nsigned  %v", whole, signed)
		}
	})
}
