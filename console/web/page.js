// What every page needs: it stays live, and times are in the reader's zone.

import { Live } from './live.js';
import { copying } from './copy.js';
import { filter } from './filter.js';
import * as times from './times.js';

const form = document.querySelector('form.filter');
const live = new Live(() => {});
if (form) filter(form, () => live.draw());
copying(document);
times.show();
live.start();
