package lineage

import (
	"time"

	"github.com/Masterminds/semver/v3"
)

// Packed is what an artifact of a registry says of how new it is; whoever pushed it wrote that.
type Packed struct {
	// Tag is by which tag it was found, and Created when it was made, as its annotation org.opencontainers.image.created says; empty for none.
	Tag, Created string
}

// Follows returns how an artifact relates to the one before: by their tags, if these are two versions, and else by when they were made. It
// is Unknown where neither distinguishes them.
func (p Packed) Follows(before Packed) Relation {
	is, err := semver.StrictNewVersion(trimmed(p.Tag))
	was, earlier := semver.StrictNewVersion(trimmed(before.Tag))
	if err == nil && earlier == nil && is.Compare(was) != 0 {
		return ordered(is.Compare(was))
	}
	made, err := time.Parse(time.RFC3339, p.Created)
	madeBefore, earlier := time.Parse(time.RFC3339, before.Created)
	if err != nil || earlier != nil {
		return Unknown
	}
	return ordered(made.Compare(madeBefore))
}

// trimmed returns a tag without the v that versions begin with.
func trimmed(tag string) string {
	if len(tag) > 1 && tag[0] == 'v' {
		return tag[1:]
	}
	return tag
}

func ordered(order int) Relation {
	switch {
	case order > 0:
		return Ahead
	case order < 0:
		return Behind
	default: // another one under the same name
		return Unknown
	}
}

// Text returns what is said of an artifact that is not known to be newer than the one before; empty where it is.
func (p Packed) Text(relation Relation, before Packed, revision string) string {
	switch {
	case relation == Ahead:
		return ""
	case relation != Behind:
		return "it is not known whether it is newer than " + revision + ": only versions as tags, and the annotation org.opencontainers.image.created, tell"
	case p.Tag != before.Tag:
		return "it is of an older version than " + revision
	default:
		return "it was made before " + revision
	}
}
