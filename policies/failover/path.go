package failover

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

// longestPath is how long a path may be, in bytes.
const longestPath = 256

// CheckPath returns an error unless a path may be used in a rule for state. Of
// kubectl's JSONPath, it allows what leads to a single value and costs no more
// than the way there: fields, single indexes, and one filter, such as
// {.conditions[?(@.type=="Ready")].status}. Anybody who may write a policy could
// otherwise keep the scheduler busy.
func CheckPath(path string) error {
	if len(path) > longestPath {
		return fmt.Errorf("a path has %d bytes at most", longestPath)
	}
	parsed, err := jsonpath.Parse("state", path)
	if err != nil {
		return err
	}
	if len(parsed.Root.Nodes) != 1 {
		return errPath
	}
	steps, ok := parsed.Root.Nodes[0].(*jsonpath.ListNode)
	if !ok || len(steps.Nodes) == 0 {
		return errPath
	}
	filters := 0
	for _, step := range steps.Nodes {
		filter, is := step.(*jsonpath.FilterNode)
		if !is {
			if !single(step) {
				return errPath
			}
			continue
		}
		if filters++; filters > 1 || !operand(filter.Left) || !operand(filter.Right) {
			return errPath
		}
	}
	return nil
}

var errPath = errors.New("a path is {.field.list[0].field}, with one filter at most, such as {.list[?(@.name==\"x\")].field}")

// single reports whether a step leads from one value to one other value.
func single(step jsonpath.Node) bool {
	switch step := step.(type) {
	case *jsonpath.FieldNode:
		return true
	case *jsonpath.ArrayNode:
		return step.Params[0].Known && step.Params[1].Derived && !step.Params[2].Known
	default:
		return false
	}
}

// operand reports whether a side of a filter's comparison is a value, or a path
// to one.
func operand(side *jsonpath.ListNode) bool {
	if side == nil {
		return false
	}
	for _, step := range side.Nodes {
		switch step.(type) {
		case *jsonpath.TextNode, *jsonpath.IntNode, *jsonpath.FloatNode, *jsonpath.BoolNode:
			continue
		}
		if !single(step) {
			return false
		}
	}
	return true
}

// find returns the value at a path in a status, as text.
func find(path string, status []byte) (string, error) {
	if err := CheckPath(path); err != nil {
		return "", err
	}
	if len(bytes.TrimSpace(status)) == 0 {
		return "", errors.New("none was reported")
	}
	var content any
	if err := utiljson.Unmarshal(status, &content); err != nil {
		return "", fmt.Errorf("it cannot be read: %w", err)
	}
	p := jsonpath.New("state")
	if err := p.Parse(path); err != nil {
		return "", err
	}
	results, err := p.FindResults(content)
	if err != nil {
		return "", err
	}
	if len(results) != 1 || len(results[0]) != 1 || !scalar(results[0][0]) {
		return "", errors.New("it leads to no single value")
	}
	var out strings.Builder
	if err := p.PrintResults(&out, results[0]); err != nil {
		return "", err
	}
	return out.String(), nil
}

// scalar reports whether a decoded value is text, a number or a boolean.
func scalar(value reflect.Value) bool {
	for value.Kind() == reflect.Interface && !value.IsNil() {
		value = value.Elem()
	}
	switch value.Kind() {
	case reflect.String, reflect.Bool, reflect.Int64, reflect.Float64:
		return true
	default:
		return false
	}
}
