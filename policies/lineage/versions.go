package lineage

import "github.com/Masterminds/semver/v3"

// Versions are two tags that a range of versions has led to, one after the other.
type Versions struct {
	// Range is the range as it is now, and Was and Is are the tags.
	Range, Was, Is string
}

// Comparable reports whether the first tag is still one that the range asks for: where it is not, somebody has asked for other
// versions than before, and what the range leads to now is meant.
func (v Versions) Comparable() bool {
	constraint, err := semver.NewConstraint(v.Range)
	was, earlier := semver.NewVersion(v.Was)
	return err == nil && earlier == nil && constraint.Check(was)
}

// Relation returns how the later one stands to the earlier one, given how their commits do. A commit that has the earlier one in
// its history follows it, whatever it is called.
func (v Versions) Relation(commits Relation) Relation {
	is, err := semver.NewVersion(v.Is)
	was, earlier := semver.NewVersion(v.Was)
	if commits == Ahead || err != nil || earlier != nil {
		return commits
	}
	switch order := is.Compare(was); {
	case order < 0:
		return Behind
	case order > 0 && commits != Unknown:
		return Beside
	default:
		return commits
	}
}
