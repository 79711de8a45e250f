package columns_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/explain/columns"
)

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
