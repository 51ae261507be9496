package codec

// maxListed bounds the elements of all lists of a message together, and the
// members of its objects over the ones that a list element has: in a list of
// large structures two bytes become hundreds.
const maxListed = 1 << 16

// smallMessage is too short to become large by what it lists.
const smallMessage = 128 << 10

// listed counts the list elements in a JSON text, and a quarter of the members
// of its objects: a map entry is small, but not nothing. Small texts count 0.
func listed(b []byte) int {
	if len(b) <= smallMessage {
		return 0
	}
	elements, members := 0, 0
	var lists []bool // of the open lists and objects
	quoted := false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '[' || c == '{':
			lists = append(lists, c == '[')
		case (c == ']' || c == '}') && len(lists) > 0:
			lists = lists[:len(lists)-1]
		case c == ',' && len(lists) > 0 && lists[len(lists)-1]:
			elements++
		case c == ',':
			members++
		}
	}
	return elements + members/4
}
