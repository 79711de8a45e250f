package lineage_test

import (
	"testing"

	"github.com/flotilla-io/flotilla/policies/lineage"
)

// TestVersions is about which of two tags of a range follows the other.
func TestVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		v       lineage.Versions
		commits lineage.Relation
		want    lineage.Relation
		other   bool // the range asks for other versions than before
	}{
		"a higher version that follows":                  {lineage.Versions{Range: "1.x", Was: "v1.9.0", Is: "v1.10.0"}, lineage.Ahead, lineage.Ahead, false},
		"a higher version of another branch":             {lineage.Versions{Range: "1.x", Was: "v1.2.1", Is: "v1.3.0"}, lineage.Aside, lineage.Beside, false},
		"a higher version of an earlier commit":          {lineage.Versions{Range: "1.x", Was: "v1.2.1", Is: "v1.3.0"}, lineage.Behind, lineage.Beside, false},
		"a higher version of which nothing is known":     {lineage.Versions{Range: "1.x", Was: "v1.2.1", Is: "v1.3.0"}, lineage.Unknown, lineage.Unknown, false},
		"a lower version":                                {lineage.Versions{Range: "1.x", Was: "v1.3.0", Is: "v1.2.0"}, lineage.Behind, lineage.Behind, false},
		"a lower version of another branch":              {lineage.Versions{Range: "1.x", Was: "v1.3.0", Is: "v1.2.0"}, lineage.Aside, lineage.Behind, false},
		"a lower version of which nothing else is known": {lineage.Versions{Range: "1.x", Was: "v1.3.0", Is: "v1.2.0"}, lineage.Unknown, lineage.Behind, false},
		"a lower version that was tagged later":          {lineage.Versions{Range: "1.x", Was: "v1.3.0", Is: "v1.2.0"}, lineage.Ahead, lineage.Ahead, false},
		"the same version under another name":            {lineage.Versions{Range: "1.x", Was: "v1.3.0", Is: "1.3.0"}, lineage.Aside, lineage.Aside, false},
		"a range that the earlier one is not in":         {lineage.Versions{Range: "1.2.x", Was: "v1.3.0", Is: "v1.2.0"}, lineage.Behind, lineage.Behind, true},
		"a branch was asked for before":                  {lineage.Versions{Range: "1.x", Was: "main", Is: "v1.2.0"}, lineage.Aside, lineage.Aside, true},
		"a candidate of a release that is taken back":    {lineage.Versions{Range: ">=1.0.0-0", Was: "v1.0.0", Is: "v1.0.0-rc.1"}, lineage.Behind, lineage.Behind, false},
	} {
		if got := tc.v.Relation(tc.commits); got != tc.want || tc.v.Comparable() == tc.other {
			t.Errorf("%s: %d, want %d; comparable: %t", name, got, tc.want, tc.v.Comparable())
		}
	}
}
