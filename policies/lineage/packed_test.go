package lineage_test

import (
	"testing"

	"github.com/flotilla-io/flotilla/policies/lineage"
)

// TestPackedFollows is about which of two artifacts of a registry is the newer one.
func TestPackedFollows(t *testing.T) {
	const noon, later, zoned = "2026-12-01T12:00:00Z", "2026-12-01T13:00:00Z", "2026-12-01T14:00:00+01:00"
	for name, tc := range map[string]struct {
		now, before lineage.Packed
		want        lineage.Relation
		says        string
	}{
		"a higher version":                    {lineage.Packed{Tag: "v1.10.0"}, lineage.Packed{Tag: "v1.9.0"}, lineage.Ahead, ""},
		"a higher one, made earlier":          {lineage.Packed{Tag: "1.2.0", Created: noon}, lineage.Packed{Tag: "v1.1.9", Created: later}, lineage.Ahead, ""},
		"a lower version":                     {lineage.Packed{Tag: "1.9.0", Created: later}, lineage.Packed{Tag: "1.10.0", Created: noon}, lineage.Behind, "it is of an older version than REVISION"},
		"a release after its candidate":       {lineage.Packed{Tag: "v1.0.0"}, lineage.Packed{Tag: "v1.0.0-rc.1"}, lineage.Ahead, ""},
		"a version that is pushed again":      {lineage.Packed{Tag: "v1.0.0", Created: later}, lineage.Packed{Tag: "v1.0.0", Created: noon}, lineage.Ahead, ""},
		"a tag that moves on":                 {lineage.Packed{Tag: "latest", Created: later}, lineage.Packed{Tag: "latest", Created: noon}, lineage.Ahead, ""},
		"a tag that moves back":               {lineage.Packed{Tag: "latest", Created: noon}, lineage.Packed{Tag: "latest", Created: zoned}, lineage.Behind, "it was made before REVISION"},
		"made at the same time":               {lineage.Packed{Tag: "latest", Created: zoned}, lineage.Packed{Tag: "latest", Created: later}, lineage.Unknown, "it is not known whether it is newer than REVISION: only versions as tags, and the annotation org.opencontainers.image.created, tell"},
		"it does not say when":                {lineage.Packed{Tag: "latest"}, lineage.Packed{Tag: "latest", Created: noon}, lineage.Unknown, "it is not known whether it is newer than REVISION: only versions as tags, and the annotation org.opencontainers.image.created, tell"},
		"a time that is none":                 {lineage.Packed{Tag: "latest", Created: "yesterday"}, lineage.Packed{Tag: "latest", Created: noon}, lineage.Unknown, "it is not known whether it is newer than REVISION: only versions as tags, and the annotation org.opencontainers.image.created, tell"},
		"a number is no version, as tags are": {lineage.Packed{Tag: "2"}, lineage.Packed{Tag: "1"}, lineage.Unknown, "it is not known whether it is newer than REVISION: only versions as tags, and the annotation org.opencontainers.image.created, tell"},
	} {
		relation := tc.now.Follows(tc.before)
		if says := tc.now.Text(relation, tc.before, "REVISION"); relation != tc.want || says != tc.says {
			t.Errorf("%s: %d, %q; want %d, %q", name, relation, says, tc.want, tc.says)
		}
	}
}
