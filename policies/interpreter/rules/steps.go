package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Same sets texts to the value that all clusters share, not counting those
// without one. It removes the field where they differ, and where the value is no
// text.
func Same(fields ...string) Step {
	return agreement(fields, func(v any) bool {
		text, ok := v.(string)
		return ok && len(text) <= mostText
	})
}

// Alike is Same for fields of any type.
func Alike(fields ...string) Step {
	return agreement(fields, func(any) bool { return true })
}

func agreement(fields []string, takes func(any) bool) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			delete(status, field)
			if v, ok := undisputed(r, field); ok && takes(v) {
				status[field] = v
			}
		}
	}
}

// undisputed returns the value of a field that all clusters share, not counting
// those without one; false where two differ, or none has a value.
func undisputed(r Reports, field string) (any, bool) {
	var value any
	for _, p := range r.Parts {
		v := p.Status[field]
		if v == nil || v == "" {
			continue
		}
		if value != nil && !reflect.DeepEqual(v, value) {
			return nil, false
		}
		value = v
	}
	return value, value != nil
}

// First sets fields to the value of the first cluster that has one: for fields
// that are the same in every cluster, or only an example.
func First(fields ...string) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			delete(status, field)
			for _, p := range r.Parts {
				if v := p.Status[field]; v != nil {
					status[field] = v
					break
				}
			}
		}
	}
}

// Others stands in a list of words for all that are not in it, such as those of a
// newer version of an operator.
const Others = "*"

// mostWord is how long a word that a member reports may be where it is not one of
// those that are expected, in bytes.
const mostWord = 128

// Worst sets the text at a path to the worst that any cluster reports there;
// missing stands for a cluster without one. words are ordered from the worst to
// the best, with Others in the place of all that are not listed; without Others,
// those are ignored. The text of an only cluster is taken whatever it is.
func Worst(path, missing string, words ...string) Step {
	return func(status map[string]any, r Reports) {
		if word := worstOf(r, path, missing, words); word != "" {
			Put(status, word, split(path)...)
		} else if parent := Object(status, split(path)[:len(split(path))-1]...); parent != nil {
			delete(parent, split(path)[len(split(path))-1])
		}
	}
}

func worstOf(r Reports, path, missing string, words []string) string {
	var seen []string
	for _, p := range r.Parts {
		seen = append(seen, cmp.Or(Text(p.Status, split(path)...), missing))
	}
	if len(seen) == 1 && len(seen[0]) <= mostWord {
		return seen[0]
	}
	for _, word := range words {
		if slices.Contains(seen, word) {
			return word
		}
		if word != Others {
			continue
		}
		for _, value := range seen {
			if value != "" && len(value) <= mostWord && !slices.Contains(words, value) {
				return value
			}
		}
	}
	return ""
}

// FromWorst sets a field to that of the cluster whose text at a path is the
// worst, so that the whole field comes from one cluster.
func FromWorst(field, path, missing string, words ...string) Step {
	return func(status map[string]any, r Reports) {
		delete(status, field)
		if p := worstPart(r, field, path, missing, words); p != nil {
			status[field] = p.Status[field]
		}
	}
}

// TextOfWorst is FromWorst for a field that is a text, which is cut to mostText.
func TextOfWorst(field, path, missing string, words ...string) Step {
	return func(status map[string]any, r Reports) {
		delete(status, field)
		if p := worstPart(r, field, path, missing, words); p != nil && Text(p.Status, field) != "" {
			status[field] = excerpt.Message(Text(p.Status, field), mostText)
		}
	}
}

// worstPart returns the first cluster that has a value in the field and whose
// text at the path is the worst; nil where there is none.
func worstPart(r Reports, field, path, missing string, words []string) *Part {
	word := worstOf(r, path, missing, words)
	for i, p := range r.Parts {
		if p.Status[field] != nil && word != "" && cmp.Or(Text(p.Status, split(path)...), missing) == word {
			return &r.Parts[i]
		}
	}
	return nil
}

// mostNames is how many clusters Names lists.
const mostNames = 50

// Names lists clusters, as in "a,b", and adds the number of those that it leaves
// out.
func Names(clusters []string) string {
	if len(clusters) <= mostNames {
		return strings.Join(clusters, ",")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(clusters[:mostNames], ","), len(clusters)-mostNames)
}

// Earliest sets times to the earliest that any cluster reports.
func Earliest(fields ...string) Step { return times(fields, false, before) }

// Latest sets times to the latest that any cluster reports.
func Latest(fields ...string) Step { return times(fields, false, after) }

// Ended sets times to the latest that any cluster reports, once every cluster
// reports one.
func Ended(fields ...string) Step { return times(fields, true, after) }

func before(a, b string) bool { return a < b }
func after(a, b string) bool  { return a > b }

func times(fields []string, all bool, wins func(a, b string) bool) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			chosen, count := "", 0
			for _, p := range r.Parts {
				at := Time(p.Status, field)
				if at == "" {
					continue
				}
				if count++; chosen == "" || wins(at, chosen) {
					chosen = at
				}
			}
			delete(status, field)
			if count > 0 && (!all || count == len(r.Parts)) {
				status[field] = chosen
			}
		}
	}
}

// Quote sets texts to what clusters report, with the cluster before each text
// where they differ. The text of an only cluster is taken as it is.
func Quote(fields ...string) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			delete(status, field)
			if text := quote(r, field); text != "" {
				status[field] = text
			}
		}
	}
}

func quote(r Reports, field string) string {
	if len(r.Parts) == 1 {
		return excerpt.Message(Text(r.Parts[0].Status, field), mostText)
	}
	if text := chorus(r, field); text != "" && len(text) <= mostText {
		return text
	}
	var out []string
	for _, p := range r.Parts {
		value := Text(p.Status, field)
		if value == "" {
			continue
		}
		if len(out) == mostNamed {
			return strings.Join(append(out, "…"), "; ")
		}
		out = append(out, p.Cluster+": "+excerpt.Message(value, mostMessage))
	}
	return strings.Join(out, "; ")
}

// chorus returns the text that all clusters with a status report; empty where one
// of them reports another one, or none.
func chorus(r Reports, field string) string {
	text := ""
	for _, p := range r.Parts {
		if p.Status == nil {
			continue
		}
		value := Text(p.Status, field)
		if value == "" || text != "" && value != text {
			return ""
		}
		text = value
	}
	return text
}

// SumByName adds up all numbers below fields, name by name. A field without
// numbers becomes an empty object, as some schemas require it.
func SumByName(fields ...string) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			sum := map[string]any{}
			for _, p := range r.Parts {
				addByName(sum, Object(p.Status, field))
			}
			status[field] = sum
		}
	}
}

func addByName(sum, part map[string]any) {
	for name, v := range part {
		switch v := v.(type) {
		case map[string]any:
			below, ok := sum[name].(map[string]any)
			if !ok {
				below = map[string]any{}
			}
			addByName(below, v)
			if len(below) > 0 {
				sum[name] = below
			}
		case int64, float64:
			if _, taken := sum[name].(map[string]any); !taken {
				sum[name] = min(Number(sum, name)+min(max(Number(part, name), 0), math.MaxInt32), math.MaxInt32)
			}
		}
	}
}

// Amount reads a quantity, which may be written as text or as a number.
func Amount(v any) (resource.Quantity, error) {
	switch v := v.(type) {
	case string:
		return Quantity(v)
	case int64:
		return Quantity(strconv.FormatInt(v, 10))
	case float64:
		return Quantity(strconv.FormatFloat(v, 'f', -1, 64))
	default:
		return resource.Quantity{}, fmt.Errorf("%T is no amount", v)
	}
}

// Amounts adds up quantities; what is no quantity counts as zero, and a sum of
// zero is left out.
func Amounts(fields ...string) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			var sum resource.Quantity
			for _, p := range r.Parts {
				if q, err := Amount(p.Status[field]); err == nil {
					sum.Add(q)
				}
			}
			delete(status, field)
			if !sum.IsZero() {
				status[field] = sum.String()
			}
		}
	}
}

// Greatest sets numbers to the greatest that any cluster reports; zero where none
// does.
func Greatest(fields ...string) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			most := int64(0)
			for _, p := range r.Parts {
				most = max(most, min(Number(p.Status, field), math.MaxInt32))
			}
			status[field] = most
		}
	}
}

// Everywhere sets booleans to whether they are true in every cluster.
func Everywhere(fields ...string) Step {
	return func(status map[string]any, r Reports) {
		for _, field := range fields {
			all := len(r.Parts) > 0
			for _, p := range r.Parts {
				all = all && Bool(p.Status, field)
			}
			status[field] = all
		}
	}
}

// Shorten cuts a list to its first n entries.
func Shorten(field string, n int) Step {
	return func(status map[string]any, _ Reports) {
		if l := List(status, field); len(l) > n {
			status[field] = l[:n]
		}
	}
}

// Default sets fields that a schema requires where no step has set them.
func Default(defaults map[string]any) Step {
	return func(status map[string]any, _ Reports) {
		for field, v := range defaults {
			if status[field] == nil {
				status[field] = v
			}
		}
	}
}

// Entries merges lists entry by entry: entries of several clusters that agree in
// the fields keys are one, to which the steps are applied. A cluster without an
// entry counts as one that reports nothing about it. The list has at most most
// entries, and is set even when it is empty.
func Entries(field string, most int, keys []string, steps ...Step) Step {
	return func(status map[string]any, r Reports) {
		found := map[string]map[string]any{}
		parts := make([]map[string]map[string]any, len(r.Parts))
		for i, p := range r.Parts {
			parts[i] = map[string]map[string]any{}
			for _, entry := range Objects(p.Status, field) {
				key, id := identity(entry, keys)
				found[key], parts[i][key] = id, entry
			}
		}
		was := map[string]map[string]any{}
		for _, entry := range Objects(status, field) {
			key, _ := identity(entry, keys)
			was[key] = entry
		}
		out := []any{}
		for _, key := range slices.Sorted(maps.Keys(found)) {
			if len(out) == most {
				break
			}
			merged := maps.Clone(found[key])
			if now := List(was[key], "conditions"); now != nil {
				merged["conditions"] = now
			}
			below := Reports{Template: r.Template}
			for i, p := range r.Parts {
				below.Parts = append(below.Parts, Part{Cluster: p.Cluster, Status: dated(parts[i][key], p.Status)})
			}
			for _, s := range steps {
				s(merged, below)
			}
			out = append(out, merged)
		}
		status[field] = out
	}
}

// identity returns the fields of an entry that distinguish it from others, and
// their JSON, which serves as a key.
func identity(entry map[string]any, keys []string) (string, map[string]any) {
	id := map[string]any{}
	for _, key := range keys {
		if v := entry[key]; v != nil {
			id[key] = v
		}
	}
	text, err := json.Marshal(id)
	if err != nil {
		return "", id // cannot happen: it was decoded from JSON
	}
	return string(text), id
}

// dated adds the generations of the status to an entry of its list.
func dated(entry, status map[string]any) map[string]any {
	if entry == nil {
		return nil
	}
	out := maps.Clone(entry)
	for _, field := range []string{FieldGeneration, FieldTemplateGeneration} {
		out[field] = status[field]
	}
	return out
}

// split splits a path into its field names, which are separated by points.
func split(path string) []string { return strings.Split(path, ".") }
