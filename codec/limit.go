package codec

// maxListed limits the elements of all lists of a message in sum, and the members of its objects
// beyond the fields of a list element: in a list of large structures two bytes decode to
// hundreds.
const maxListed = 1 << 16

// smallMessage is a size below which no list can decode to much memory.
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
