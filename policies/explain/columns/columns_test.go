package columns_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/explain/columns"
)

// narrow is a writer for a narrow screen.
type narrow struct{ strings.Builder }

func (*narrow) Width() int { return 50 }

// TestNarrow checks that lines are as wide as the writer's own width allows.
func TestNarrow(t *testing.T) {
	table := columns.Table{Plain: true}
	table.Add("east-1", strings.TrimSpace(strings.Repeat("none of it ", 6)))
	var out narrow
	table.Write(&out)
	want := "east-1  none of it none of it none of it none of\n        it none of it none of it\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTable(t *testing.T) {
	table := columns.Table{Right: map[int]bool{1: true}, Hangs: true}
	table.Add("NAME", "ROOM", "WHY")
	table.Add("east-1", "9", strings.TrimSpace(strings.Repeat("none of it ", 10)))
	table.Add("west", "10", "")
	table.AddWhole("", "", strings.TrimSpace(strings.Repeat("command ", 12)))
	var out strings.Builder
	table.Write(&out)
	want := `NAME    ROOM  WHY
east-1     9  none of it none of it none of it none of it none of it none of it none of it none
                  of it none of it none of it
west      10
              command command command command command command command command command command command command
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
