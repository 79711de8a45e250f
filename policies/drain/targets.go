package drain

import (
	"fmt"
	"strings"
)

// Together returns the rows of now and, as Gone, those of before that are not among them: what a drain has once counted
// counts until its end, whatever becomes of it. before are the rows of an earlier look at the same drain. Neither is changed.
func Together(before, now []Row) []Row {
	there := make(map[string]bool, len(now))
	for i := range now {
		there[now[i].Key()] = true
	}
	out := append(make([]Row, 0, len(now)), now...)
	for i := range before {
		if row := before[i]; !there[row.Key()] {
			row.State, row.Why, row.Next, row.To, row.RunsOn, row.Unready, row.Data = Gone, "it was deleted", "", nil, false, nil, ""
			out = append(out, row)
		}
	}
	Sort(out)
	return out
}

// Totals is how many templates of a drain stand where. Their sum is Total, and stays so during a drain.
type Totals struct {
	Total int `json:"total"`
	// Moving are those that wait or leave; the drain is over once there are none.
	Moving int `json:"moving"`
	Left   int `json:"left"`
	// Gone are those that were deleted meanwhile.
	Gone     int `json:"gone"`
	Finished int `json:"finished"`
	Refused  int `json:"refused"`
	Stay     int `json:"stay"`
}

// Count counts rows by their states.
func Count(rows []Row) Totals {
	t := Totals{Total: len(rows)}
	for i := range rows {
		switch rows[i].State {
		case Waits, Leaves:
			t.Moving++
		case Left:
			t.Left++
		case Gone:
			t.Gone++
		case Finished:
			t.Finished++
		case Refused:
			t.Refused++
		case Stays:
			t.Stay++
		}
	}
	return t
}

// String is "3 left, 1 finished there, 2 refused" for all but what moves still.
func (t Totals) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		text string
	}{{t.Left, "%d left"}, {t.Gone, "%d deleted"}, {t.Finished, "%d finished there"}, {t.Refused, "%d refused"}, {t.Stay, "%d kept there"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf(part.text, part.n))
		}
	}
	return strings.Join(parts, ", ")
}
