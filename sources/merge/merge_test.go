package merge_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/merge"
)

// files returns files of one letter for each line; "-" for a link.
func files(text ...string) artifact.Files {
	out := artifact.Files{}
	for i := 0; i < len(text); i += 2 {
		out[text[i]] = file(text[i+1])
	}
	return out
}

func file(text string) artifact.File {
	if text == "-" {
		return artifact.File{Link: true}
	}
	if text == "" {
		return artifact.File{}
	}
	return artifact.File{Data: []byte(strings.Join(strings.Split(text, ""), "\n") + "\n")}
}

func TestFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		base, ours, theirs, want artifact.Files
		conflicts                []string
	}{
		"what one side did is taken":                {files("a", "1", "b", "1"), files("a", "2", "b", "1"), files("a", "1", "b", "2"), files("a", "2", "b", "2"), nil},
		"files come and go":                         {files("a", "1", "b", "1"), files("b", "1", "c", "1"), files("a", "1", "d", "1"), files("c", "1", "d", "1"), nil},
		"both did the same":                         {files("a", "1", "b", "1"), files("a", "2"), files("a", "2"), files("a", "2"), nil},
		"different lines of one file":               {files("a", "12345"), files("a", "x2345"), files("a", "1234y"), files("a", "x234y"), nil},
		"lines are added at both ends":              {files("a", "123"), files("a", "0123"), files("a", "1234"), files("a", "01234"), nil},
		"lines go on both sides":                    {files("a", "12345"), files("a", "345"), files("a", "123"), files("a", "3"), nil},
		"both changed a line alike, and one more":   {files("a", "12345"), files("a", "x2345"), files("a", "x2y45"), files("a", "x2y45"), nil},
		"the same line":                             {files("a", "123"), files("a", "1x3"), files("a", "1y3"), nil, []string{"a"}},
		"lines beside each other, as Git has it":    {files("a", "1234"), files("a", "1x34"), files("a", "12y4"), nil, []string{"a"}},
		"one side changes what the other deletes":   {files("a", "1", "b", "1"), files("a", "2", "b", "1"), files("b", "1"), nil, []string{"a"}},
		"the same, the other way round":             {files("a", "1"), files(), files("a", "2"), nil, []string{"a"}},
		"both add a file":                           {files(), files("a", "1", "b", "1"), files("a", "2", "b", "2"), nil, []string{"a", "b"}},
		"a link in place of a file that changes":    {files("a", "1"), files("a", "-"), files("a", "2"), nil, []string{"a"}},
		"an empty file that gets lines":             {files("a", ""), files("a", ""), files("a", "1"), files("a", "1"), nil},
		"what is binary is not merged":              {artifact.Files{"a": {Data: []byte("1\x00\n2\n3\n")}}, artifact.Files{"a": {Data: []byte("1\x00\n2\n4\n")}}, artifact.Files{"a": {Data: []byte("5\x00\n2\n3\n")}}, nil, []string{"a"}},
		"the right to execute it is merged, too":    {files("a", "123"), files("a", "123x"), artifact.Files{"a": {Data: []byte("0\n1\n2\n3\n"), Executable: true}}, artifact.Files{"a": {Data: []byte("0\n1\n2\n3\nx\n"), Executable: true}}, nil},
		"nothing anywhere":                          {nil, nil, nil, artifact.Files{}, nil},
		"a last line without an end stays so":       {artifact.Files{"a": {Data: []byte("1\n2\n3")}}, artifact.Files{"a": {Data: []byte("0\n1\n2\n3")}}, artifact.Files{"a": {Data: []byte("1\n2\n4")}}, artifact.Files{"a": {Data: []byte("0\n1\n2\n4")}}, nil},
		"too many lines are left to a person":       {files("a", strings.Repeat("1", 7000)), files("a", strings.Repeat("1", 7000)+"2"), files("a", "0"+strings.Repeat("1", 7000)), nil, []string{"a"}},
		"very many lines are equal, and two differ": {files("a", "a"+strings.Repeat("1", 6000)+"b"), files("a", "x"+strings.Repeat("1", 6000)+"b"), files("a", "a"+strings.Repeat("1", 6000)+"y"), files("a", "x"+strings.Repeat("1", 6000)+"y"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := merge.Files(tc.base, tc.ours, tc.theirs)
			var conflict *merge.ConflictError
			if errors.As(err, &conflict) != (tc.conflicts != nil) {
				t.Fatal(err)
			}
			if conflict != nil {
				if diff := cmp.Diff(tc.conflicts, conflict.Paths); diff != "" {
					t.Errorf("conflicts (-want +got):\n%s", diff)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzFiles: a side that changed nothing takes what the other one did, both sides may be swapped, and every line of what is merged
// is one of a side.
func FuzzFiles(f *testing.F) {
	f.Add([]byte("1\n2\n3\n"), []byte("0\n1\n2\n3\n"), []byte("1\n2\n4"))
	f.Add([]byte("a\na\na\n"), []byte("a\n"), []byte("a\na\na\na\n"))
	f.Fuzz(func(t *testing.T, base, ours, theirs []byte) {
		of := func(data []byte) artifact.Files { return artifact.Files{"a": {Data: data}} }
		if got, err := merge.Files(of(base), of(base), of(theirs)); err != nil || !bytes.Equal(got["a"].Data, theirs) {
			t.Errorf("what only they did: %q, %v", got["a"].Data, err)
		}
		one, errOne := merge.Files(of(base), of(ours), of(theirs))
		other, errOther := merge.Files(of(base), of(theirs), of(ours))
		if (errOne == nil) != (errOther == nil) || errOne == nil && !bytes.Equal(one["a"].Data, other["a"].Data) {
			t.Errorf("%q, %v; swapped %q, %v", one["a"].Data, errOne, other["a"].Data, errOther)
		}
		both := string(ours) + "\n" + string(theirs)
		for line := range strings.Lines(string(one["a"].Data)) {
			if !strings.Contains(both, strings.TrimSuffix(line, "\n")) {
				t.Errorf("%q is of neither side", line)
			}
		}
	})
}
